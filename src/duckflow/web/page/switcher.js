// The other sessions beside the one that is open, with what waits.

import { html } from "./vendor/htm-preact.js";
import { useFacts } from "./facts.js";
import { Icon } from "./icons.js";
import { addressOf, waitingIn } from "./list.js";
import { useFresh } from "./notices.js";
import { t, visible } from "./words.js";

const MOST_SHOWN = 30;

/** The sessions but for this one, and how many answers are waited for elsewhere. A page beside a terminal has no others. */
export function useOthers(id, alone, lock) {
	const [facts] = useFacts(alone ? "" : "api/sessions", lock);
	const sessions = (facts?.sessions ?? []).filter((session) => !session.archived || session.state !== "old");
	const waiting = sessions.filter((session) => session.id !== id && session.state === "waiting");
	useFresh(waitingIn(facts, waiting));
	return { sessions, fleetAsks: facts?.fleet_asks ?? 0, waits: waiting.length + (facts?.fleet_asks ?? 0) };
}

export const SwitchButton = ({ others, open, toggle }) => html`<button
	class="tool switch-button"
	aria-expanded=${String(open)}
	aria-controls="switcher"
	aria-label=${others.waits ? t("page.others_wait", { count: others.waits }) : t("page.others")}
	title=${t("page.others")}
	onClick=${toggle}
>
	<${Icon} name="list" />${others.waits ? html`<span class="count">${others.waits}</span>` : null}
</button>`;

export function Switcher({ id, others, chosen }) {
	const shown = others.sessions.slice(0, MOST_SHOWN);
	return html`<nav class="switcher" id="switcher" aria-label=${t("page.others")}>
		<p class="row-of"><a href="#/">${t("page.all_sessions")}</a><a href="#/new">${t("page.new")}</a></p>
		${others.fleetAsks
			? html`<a class="fleet-asks" href="#/fleet"><${Icon} name="gate" />${t("page.fleet_asks", { count: others.fleetAsks })}</a>`
			: null}
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
