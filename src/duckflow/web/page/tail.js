// Long texts: the end of a running command's output, the beginning of a finished one's.

import { html, useState } from "./vendor/htm-preact.js";
import { duration, printed, t } from "./words.js";

const LONG_TEXT = 6000;
const TAIL_LINES = 14;

export function Tail({ text, lines = TAIL_LINES }) {
	const shown = printed(text).replace(/\n$/, "").split("\n").slice(-lines).join("\n");
	return html`<pre class="out tail" tabindex="0" role="group" aria-label=${t("page.output")}>${shown}</pre>`;
}

export function Long({ text, most = LONG_TEXT, draw = (shown) => html`<pre class="out" tabindex="0">${shown}</pre>` }) {
	const [all, setAll] = useState(false);
	const shown = all || text.length <= most ? text : text.slice(0, most);
	return html`${draw(shown)}
		${shown.length < text.length
			? html`<button class="link" onClick=${() => setAll(true)}>${t("page.show_all", { characters: text.length - shown.length })}</button>`
			: null}`;
}

export const elapsed = (began) => duration(Date.now() / 1000 - began);
