// All sessions of this machine, those that wait first, and a search through them.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/htm-preact.js";
import { Vitals } from "./chart.js";
import { useTick } from "./facts.js";
import { Icon } from "./icons.js";
import { get, post } from "./requests.js";
import { NewSession } from "./start.js";
import { ago, moment, money, t, visible } from "./words.js";

const MINUTE_MS = 60000;
const TYPING_MS = 350;
const LEAST_WORDS = 2;

export const addressOf = (id, more = "") => `#/s/${encodeURIComponent(id)}${more}`;

/** Returns what waits, for notices outside of the page; nothing while the list is not known. */
export const waitingIn = (facts, waiting) => {
	if (!facts) return null;
	const told = waiting.map(({ id, title, question, about }) => [id, title, `${question} ${about ?? ""}`]);
	const count = facts.fleet_asks;
	return count ? [...told, [`fleet-${count}`, t("page.fleet"), t("page.fleet_asks", { count })]] : told;
};

export function SessionList({ go, tell, facts, problem, fleetAsks, folder, begins }) {
	useTick(MINUTE_MS);
	const [wanted, setWanted] = useState("");
	const [archived, setArchived] = useState(false);
	const sessions = facts?.sessions ?? [];
	const now = facts ? facts.now + (performance.now() - facts.at) / 1000 : 0;
	const words = wanted.trim().toLowerCase();
	const away = sessions.filter((session) => session.archived).length;
	const fits = ({ title, folder: place }) => !words || `${title} ${place}`.toLowerCase().includes(words);
	const shown = sessions.filter((session) => (archived || !session.archived || session.state !== "old") && fits(session));
	return html`<main class="page" id="main" tabindex="-1">
		<h1>${t("page.sessions")}</h1>
		<${NewSession} folder=${folder} go=${go} tell=${tell} open=${begins} />
		${problem ? html`<p class="problem" role="status">${visible(problem)}</p>` : null}
		${sessions.length
			? html`<label class="search">
					<span class="unseen">${t("page.search")}</span>
					<input type="search" placeholder=${t("page.search")} value=${wanted} onInput=${(event) => setWanted(event.target.value)} />
				</label>`
			: null}
		<${FleetAsks} count=${fleetAsks} />
		${facts && !shown.length ? html`<p class="nothing">${t(words ? "page.no_title" : "page.no_sessions")}</p>` : null}
		${away
			? html`<label class="all">
					<input type="checkbox" checked=${archived} onChange=${(event) => setArchived(event.target.checked)} />
					${t("page.archived", { count: away })}
				</label>`
			: null}
		<ul class="sessions">
			${shown.map((session) => html`<${Row} key=${session.id} session=${session} now=${now} tell=${tell} />`)}
		</ul>
		<${Said} words=${words} />
	</main>`;
}

export const FleetAsks = ({ count }) =>
	count ? html`<a class="fleet-asks" href="#/fleet"><${Icon} name="gate" />${t("page.fleet_asks", { count })}</a>` : null;

/** Shows the places in all sessions where something was said. */
function Said({ words }) {
	const [found, setFound] = useState({ words: "", places: [] });
	useEffect(() => {
		if (words.length < LEAST_WORDS) return undefined;
		const look = () =>
			get(`api/search?${new URLSearchParams({ q: words })}`).then(
				(places) => setFound({ words, places }),
				(error) => setFound({ words, places: [], problem: error.message }),
			);
		const timer = setTimeout(look, TYPING_MS);
		return () => clearTimeout(timer);
	}, [words]);
	if (words.length < LEAST_WORDS) return null;
	return html`<section class="said-in" aria-labelledby="said-in">
		<h2 id="said-in">${t("page.said_in")}</h2>
		<p class="nothing" role="status">
			${found.problem ? visible(found.problem) : found.words !== words ? t("page.searching") : found.places.length ? "" : t("page.not_said")}
		</p>
		<ul class="sessions">
			${found.places.map(
				({ id, title, folder, at, who, excerpt }) => html`<li class="session">
					<a href=${addressOf(id, `/talk/${at}`)}>
						<span class="title">${visible(title || t("page.untitled"))}</span>
						<span class="state">${visible(who)}</span>
						<span class="excerpt">${visible(excerpt)}</span>
						<span class="meta"><span class="folder">${visible(folder)}</span><span>${moment(at)}</span></span>
					</a>
				</li>`,
			)}
		</ul>
	</section>`;
}

const Row = ({ session, now, tell }) => html`<li class=${`session st-${session.state}`}>
	<a href=${addressOf(session.id)}>
		<span class=${`state st-${session.state}`}>${t(`page.state.${session.state}`)}</span>
		<span class="title">${visible(session.title || t("page.untitled"))}</span>
		${session.question
			? html`<span class="question">
					${session.asker ? html`<span class="chip">${visible(session.asker)}</span> ` : null}${visible(session.question)}
					${session.about ? html` <code>${visible(session.about)}</code>` : null}
				</span>`
			: null}
		<span class="meta">
			<span class="folder">${visible(session.folder)}</span><span>${ago(now - session.updated)}</span>
			${session.cost ? html`<span>${money(session.cost)}</span>` : null}
			<${Vitals} vitals=${session.vitals} />
		</span>
	</a>
	<${Deeds} session=${session} tell=${tell} />
</li>`;

/** Actions on a whole session; some are possible only after it has ended. */
function Deeds({ session, tell }) {
	const [open, setOpen] = useState("");
	const [title, setTitle] = useState(session.title);
	const box = useRef(null);
	const began = useRef(false);
	useLayoutEffect(() => {
		// The focus goes to the part that was opened or closed, at once.
		if (began.current) box.current.querySelector("input, button:not(.bad)")?.focus();
		began.current = true;
	}, [open]);
	const path = `api/sessions/${encodeURIComponent(session.id)}`;
	const act = async (what, body) => {
		try {
			const done = await post(`${path}/${what}`, body);
			setOpen("");
			if (done.id) location.hash = addressOf(done.id);
		} catch (error) {
			tell(error.message, "warn");
		}
	};
	const rename = (event) => {
		event.preventDefault();
		act("rename", { title });
	};
	const button = (name, onClick, kind = "") => html`<button class=${kind} onClick=${onClick}>${t(`page.session_${name}`)}</button>`;
	const label = t("page.session_more", { title: session.title });
	if (!open) return html`<div ref=${box}><button class="tool more" aria-label=${label} title=${label} onClick=${() => setOpen("menu")}>⋯</button></div>`;
	const id = `title-${session.id}`;
	const menu = () => html`
		${button("rename", () => setOpen("rename"))} ${button("fork", () => act("fork"))}
		${session.state === "old"
			? html`${button(session.archived ? "unarchive" : "archive", () => act("archive", { away: !session.archived }))}
				${button("remove", () => setOpen("remove"))}`
			: null}
		${["html", "md"].map((form) => html`<a class="button" href=${`${path}/export?format=${form}`} download>${t(`page.session_${form}`)}</a>`)}`;
	const naming = () => html`<form onSubmit=${rename}>
		<label class="unseen" for=${id}>${t("page.session_rename")}</label>
		<input id=${id} value=${title} maxlength="100" onInput=${(event) => setTitle(event.target.value)} />
		<button class="primary">${t("page.session_rename")}</button>
	</form>`;
	const removing = () => html`<p class="warn">${t("page.session_sure")}</p>
		${button("remove", () => act("remove"), "bad")}`;
	return html`<div class="deeds" ref=${box}>
		${{ menu, rename: naming, remove: removing }[open]()}
		<button onClick=${() => setOpen("")}>${t("page.cancel")}</button>
	</div>`;
}
