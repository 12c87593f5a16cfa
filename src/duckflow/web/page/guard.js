// A part that cannot be shown says so in its own place, and the rest of the page stays.

import { html, useErrorBoundary } from "./vendor/htm-preact.js";
import { t } from "./words.js";

export function Guard({ children }) {
	const [problem] = useErrorBoundary();
	return problem ? html`<p class="problem">${t("page.cannot_show")} ${String(problem.message)}</p>` : children;
}
