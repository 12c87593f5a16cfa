// Tells outside of the page that something waits: by its icon, and by notifications if wanted.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { t, visible } from "./words.js";

const ASKED = "duckflow-notices";

export function mark(waits) {
	const icon = document.querySelector("link[rel=icon]");
	const wanted = waits ? "page/duck-waits.svg" : "page/duck.svg";
	if (icon.getAttribute("href") !== wanted) icon.setAttribute("href", wanted);
}

/** Shows a notification if nobody looks at the page. */
export function notify(title, text) {
	if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
	try {
		new Notification(visible(title), { body: visible(text), icon: "page/duck.svg", tag: title });
	} catch {
		// Browsers on phones refuse this; there the title and the icon tell.
	}
}

/** Notifies of entries that did not wait before: [id, title, text] each; nothing while the list is not known. */
export function useFresh(waiting) {
	const known = useRef(null);
	useEffect(() => {
		for (const [id, title, text] of waiting ?? []) if (known.current && !known.current.has(id)) notify(title, text);
		if (waiting) known.current = new Set(waiting.map(([id]) => id));
	}, [waiting && waiting.map(([id]) => id).join()]);
}

/** Offers notifications once, beside a question: then the person knows what they are for. */
export function Notices() {
	const [offered, setOffered] = useState(() => "Notification" in window && Notification.permission === "default" && !localStorage.getItem(ASKED));
	if (!offered) return null;
	const end = () => {
		localStorage.setItem(ASKED, "yes");
		setOffered(false);
	};
	const want = () => Notification.requestPermission().finally(end);
	const button = (name, act) => html`<button type="button" class="link" onClick=${act}>${t(`page.notices_${name}`)}</button>`;
	return html`<p class="hint notices">${t("page.notices")} ${button("yes", want)} ${button("no", end)}</p>`;
}
