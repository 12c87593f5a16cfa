// Vitals and tokens over time, with Duck Calls, Gates and prunings marked.

import { html, useState } from "./vendor/htm-preact.js";
import { moment, percent, t, thousands } from "./words.js";

const LINES = ["mood", "focus", "stamina"];
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [400, 210, 36, 36, 26, 22];
const MOST_POINTS = 400;

/** Keeps as many points as can be seen; marked ones always stay. */
function thinned(points) {
	const each = Math.ceil(points.length / MOST_POINTS);
	return points.filter((point, place) => place % each === 0 || point.mark || place === points.length - 1);
}

export function Chart({ points: given }) {
	const [cursor, setCursor] = useState(null);
	const points = thinned(given);
	if (points.length < 2) return html`<p class="nothing">${t("page.no_chart")}</p>`;
	const most = Math.max(1, ...points.map((point) => point.tokens));
	const x = (place) => LEFT + (place / (points.length - 1)) * (WIDTH - LEFT - RIGHT);
	const y = (part) => TOP + (1 - part) * (HEIGHT - TOP - BOTTOM);
	const path = (value) => points.map((point, place) => `${place ? "L" : "M"}${x(place).toFixed(1)} ${y(value(point)).toFixed(1)}`).join("");
	const area = `${path((point) => point.tokens / most)}L${x(points.length - 1)} ${y(0)}L${x(0)} ${y(0)}Z`;
	const marked = points.map((point, place) => [point, place]).filter(([point]) => point.mark);
	const at = cursor === null ? points.length - 1 : Math.min(cursor, points.length - 1);
	const point = points[at];
	const told = LINES.map((name) => `${t(`vital.${name}`)} ${percent(point[name])}`).join(", ");
	const move = (event) => {
		const step = { ArrowLeft: -1, ArrowRight: 1, Home: -points.length, End: points.length }[event.key];
		if (!step) return;
		event.preventDefault();
		setCursor(Math.max(0, Math.min(points.length - 1, at + step)));
	};
	const point_at = (event) => {
		const box = event.currentTarget.getBoundingClientRect();
		const place = (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT);
		setCursor(Math.max(0, Math.min(points.length - 1, Math.round(place * (points.length - 1)))));
	};
	return html`<figure class="chart">
		<svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} tabindex="0" role="slider" aria-label=${t("page.chart")} aria-valuemin="0" aria-valuemax=${points.length - 1} aria-valuenow=${at}
			aria-valuetext=${`${moment(point.at)}: ${told}, ${t("page.tokens", { tokens: thousands(point.tokens) })}${point.mark ? `, ${t(`page.mark_${point.mark}`)}` : ""}`}
			onKeyDown=${move} onPointerMove=${point_at} onPointerLeave=${() => setCursor(null)}>
			${[0, 0.5, 1].map((part) => html`<line class="grid" x1=${LEFT} x2=${WIDTH - RIGHT} y1=${y(part)} y2=${y(part)} /><text class="scale end" x=${LEFT - 6} y=${y(part) + 4}>${percent(part)}</text>`)}
			${[0.5, 1].map((part) => html`<text class="scale" x=${WIDTH - RIGHT + 6} y=${y(part) + 4}>${thousands(Math.round(most * part))}</text>`)}
			<path class="area" d=${area} />
			${LINES.map((name) => html`<path class=${`curve v-${name}`} d=${path((one) => one[name])} />`)}
			${marked.map(([one, place]) => html`<g class=${`mark m-${one.mark}`}><line x1=${x(place)} x2=${x(place)} y1=${TOP - 6} y2=${y(0)} /><${Sign} kind=${one.mark} x=${x(place)} y=${TOP - 12} /></g>`)}
			<line class="cursor" x1=${x(at)} x2=${x(at)} y1=${TOP} y2=${y(0)} />
			${LINES.map((name) => html`<circle class=${`spot v-${name}`} cx=${x(at)} cy=${y(point[name])} r="3.5" />`)}
			<text class="scale" x=${LEFT} y=${HEIGHT - 6}>${moment(points[0].at)}</text>
			<text class="scale end" x=${WIDTH - RIGHT} y=${HEIGHT - 6}>${moment(points.at(-1).at)}</text>
		</svg>
		<figcaption>
			<ul class="legend">
				${LINES.map((name) => html`<li><span class=${`key v-${name}`} />${t(`vital.${name}`)} <b>${percent(point[name])}</b></li>`)}
				<li><span class="key v-tokens" />${t("page.tokens", { tokens: thousands(point.tokens) })}</li>
			</ul>
			<ul class="legend marks">
				${["duck", "gate", "prune"].map((kind) => html`<li>
					<svg viewBox="0 0 14 14" aria-hidden="true"><g class=${`mark m-${kind}`}><${Sign} kind=${kind} x="7" y="7" /></g></svg>
					${t(`page.mark_${kind}`)} <b>${given.filter((one) => one.mark === kind).length}</b></li>`)}
			</ul>
		</figcaption>
	</figure>`;
}

function Sign({ kind, x, y }) {
	const [cx, cy] = [Number(x), Number(y)];
	if (kind === "duck") return html`<circle cx=${cx} cy=${cy} r="4.5" />`;
	if (kind === "gate") return html`<path d=${`M${cx} ${cy - 5}l5 5l-5 5l-5-5z`} />`;
	return html`<path d=${`M${cx - 4.5} ${cy - 4}h9l-4.5 8z`} />`;
}

const LOW = 0.35;

/** Shows the three vitals, each with its name. */
export function Vitals({ vitals }) {
	if (!vitals) return null;
	return html`<span class="vitals">${LINES.map((name) => html`<span class=${vitals[name] < LOW ? "low" : ""}>${t(`vital.${name}`)} ${percent(vitals[name])}</span>`)}</span>`;
}
