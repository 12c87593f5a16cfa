// The list of other sessions beside the open one, with their waiting questions.

import { html } from "./vendor/htm-preact.js";
import { Icon } from "./icons.js";
import { FleetAsks, addressOf } from "./list.js";
import { t, visible } from "./words.js";

const MOST_SHOWN = 30;

/** `waits` is the number of answers that are waited for elsewhere. */
export const SwitchButton = ({ waits, open, toggle }) => html`<button
	class="tool switch-button"
	aria-expanded=${String(open)}
	aria-controls="switcher"
	aria-label=${waits ? t("page.others_wait", { count: waits }) : t("page.others")}
	title=${t("page.others")}
	onClick=${toggle}
>
	<${Icon} name="list" />${waits ? html`<span class="count">${waits}</span>` : null}
</button>`;

export function Switcher({ id, facts, fleetAsks, chosen }) {
	const shown = (facts?.sessions ?? []).filter((session) => !session.archived || session.state !== "old").slice(0, MOST_SHOWN);
	return html`<nav class="switcher" id="switcher" aria-label=${t("page.others")}>
		<p class="row-of"><a href="#/">${t("page.all_sessions")}</a><a href="#/new">${t("page.new")}</a></p>
		<${FleetAsks} count=${fleetAsks} />
		<ul>
			${shown.map(
				(session) => html`<li class=${`st-${session.state}`}>
					<a href=${addressOf(session.id)} aria-current=${session.id === id ? "page" : undefined} onClick=${chosen}>
						<span class="title">${visible(session.title || t("page.untitled"))}</span>
						<span class=${`state st-${session.state}`}>${t(`page.state.${session.state}`)}</span>
					</a>
				</li>`,
			)}
		</ul>
	</nav>`;
}
