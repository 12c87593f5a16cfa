// The choice of colours: the machine's own, light, or dark.

import { html, useState } from "./vendor/htm-preact.js";
import { Icon } from "./icons.js";
import { t } from "./words.js";

const THEMES = ["auto", "light", "dark"];
const THEME_ICONS = { auto: "auto", light: "sun", dark: "moon" };

export function Theme() {
	const [theme, setTheme] = useState(localStorage.getItem("duckflow-theme") ?? "auto");
	const change = () => {
		const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
		localStorage.setItem("duckflow-theme", next);
		if (next === "auto") delete document.documentElement.dataset.theme;
		else document.documentElement.dataset.theme = next;
		setTheme(next);
	};
	const told = `${t("page.theme")}: ${t(`page.theme_${theme}`)}`;
	return html`<button class="tool theme" aria-label=${told} title=${told} onClick=${change}><${Icon} name=${THEME_ICONS[theme]} /></button>`;
}
