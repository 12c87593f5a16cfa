// Small icons, drawn as SVG.

import { html } from "./vendor/htm-preact.js";

const PATHS = {
	check: "M3 8.5l3.2 3.2L13 5",
	cross: "M4 4l8 8M12 4l-8 8",
	copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
	user: "M5.5 3.5L10 8l-4.5 4.5",
	gate: "M8 1.8l5 2v3.7c0 3.2-2.1 5.5-5 6.7-2.9-1.2-5-3.5-5-6.7V3.8z",
	note: "M8 8h.01",
	warn: "M8 2.5L14.3 13.5H1.7zM8 6.7v3M8 11.7h.01",
	job: "M8 5.7a2.3 2.3 0 100 4.6 2.3 2.3 0 000-4.6zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M3.4 12.6l1.4-1.4M11.2 4.8l1.4-1.4",
	think: "M4.2 10.7A3.2 3.2 0 013.8 4.4a4.3 4.3 0 018.2.6 2.9 2.9 0 01-.3 5.7zM5.5 13.5h.01",
	clip: "M13 7.2l-5.3 5.3a3.2 3.2 0 01-4.5-4.5l5.9-5.9a2.1 2.1 0 013 3l-5.9 5.9a1 1 0 01-1.5-1.5L9.6 4.6",
	picture: "M2 3h12v10H2zM2 11l3.5-3.5 3 3L11 8l3 3M5.2 5.8h.01",
	send: "M8 13V3M3.5 7.5L8 3l4.5 4.5",
	stop: "M4.5 4.5h7v7h-7z",
	later: "M8 2.2a5.8 5.8 0 100 11.6A5.8 5.8 0 008 2.2zM8 5v3.3l2.2 1.3",
	back: "M9.5 3.5L5 8l4.5 4.5",
	sun: "M8 5.2a2.8 2.8 0 100 5.6 2.8 2.8 0 000-5.6zM8 1.3v1.4M8 13.3v1.4M1.3 8h1.4M13.3 8h1.4M3.3 3.3l1 1M11.7 11.7l1 1M3.3 12.7l1-1M11.7 4.3l1-1",
	moon: "M13.3 9.6A5.7 5.7 0 016.4 2.7a5.7 5.7 0 106.9 6.9z",
	auto: "M8 2.2a5.8 5.8 0 100 11.6zM8 2.2a5.8 5.8 0 010 11.6",
	list: "M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01",
	side: "M2 3h12v10H2zM10 3v10",
	down: "M8 3v10M3.5 8.5L8 13l4.5-4.5",
	pause: "M5.5 3.5v9M10.5 3.5v9",
	play: "M5 3.2l7.5 4.8L5 12.8z",
	undo: "M6 3L3 6l3 3M3 6h6a3.8 3.8 0 010 7.6H6",
	ring: "M8 4.5a3.5 3.5 0 100 7 3.5 3.5 0 000-7z",
};

export const Icon = ({ name, label }) => html`<svg
	class=${`icon i-${name}`}
	viewBox="0 0 16 16"
	role=${label ? "img" : undefined}
	aria-label=${label}
	aria-hidden=${label ? undefined : "true"}
>
	<path d=${PATHS[name]} />
</svg>`;

export const Duck = () => html`<img class="duck" src="page/duck.svg" alt="" width="22" height="22" />`;

export const Spinner = ({ label }) => html`<span class="spinner" role=${label ? "img" : undefined} aria-label=${label} aria-hidden=${label ? undefined : "true"} />`;
