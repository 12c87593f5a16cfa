// Copying texts, if the browser lets a page do so.

import { html, useState } from "./vendor/htm-preact.js";
import { Icon } from "./icons.js";
import { t } from "./words.js";

const DONE_MS = 1500;

async function copyText(text) {
	if (navigator.clipboard) return navigator.clipboard.writeText(text);
	// A page that is not served on this machine has no clipboard API.
	const box = document.createElement("textarea");
	box.value = text;
	box.className = "unseen";
	document.body.append(box);
	box.select();
	document.execCommand("copy");
	box.remove();
	return undefined;
}

export function Copy({ read, label }) {
	const [done, setDone] = useState(false);
	const copy = async (event) => {
		event.preventDefault();
		event.stopPropagation();
		await copyText(read());
		setDone(true);
		setTimeout(() => setDone(false), DONE_MS);
	};
	const name = t(done ? "page.copied" : "page.copy");
	return html`<button type="button" class="tool copy" title=${name} aria-label=${label && !done ? label : name} onClick=${copy}><${Icon} name=${done ? "check" : "copy"} /></button>`;
}
