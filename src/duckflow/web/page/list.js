// All sessions of this machine; those that wait for the person come first.

import { html, useState } from "./vendor/htm-preact.js";
import { Vitals } from "./chart.js";
import { useFacts, useTick } from "./facts.js";
import { post } from "./requests.js";
import { ago, money, t, visible } from "./words.js";

const MINUTE_MS = 60000;

export function SessionList({ go, tell, lock, folder }) {
	const [facts, problem] = useFacts("api/sessions", lock);
	useTick(MINUTE_MS);
	const [wanted, setWanted] = useState("");
	const sessions = facts?.sessions;
	const now = facts ? facts.now + (performance.now() - facts.at) / 1000 : 0;
	const words = wanted.trim().toLowerCase();
	const shown = (sessions ?? []).filter((one) => !words || `${one.title} ${one.folder}`.toLowerCase().includes(words));
	return html`<main class="page" id="main" tabindex="-1">
		<h1>${t("page.sessions")}</h1>
		<${NewSession} folder=${folder} go=${go} tell=${tell} />
		${problem ? html`<p class="problem" role="status">${visible(problem)}</p>` : null}
		${sessions?.length > 6
			? html`<label class="search"><span class="unseen">${t("page.search")}</span><input type="search" placeholder=${t("page.search")} value=${wanted} onInput=${(event) => setWanted(event.target.value)} /></label>`
			: null}
		${sessions && !shown.length ? html`<p class="nothing">${t("page.no_sessions")}</p>` : null}
		<ul class="sessions">${shown.map((one) => html`<${Row} key=${one.id} session=${one} now=${now} />`)}</ul>
	</main>`;
}

const Row = ({ session, now }) => html`<li class=${`session st-${session.state}`}>
	<a href=${`#/s/${encodeURIComponent(session.id)}`}>
		<span class=${`state st-${session.state}`}>${t(`page.state.${session.state}`)}</span>
		<span class="title">${visible(session.title || t("page.untitled"))}</span>
		${session.question ? html`<span class="question">${session.asker ? html`<span class="chip">${visible(session.asker)}</span> ` : null}${visible(session.question)}</span>` : null}
		<span class="meta"><span class="folder">${visible(session.folder)}</span><span>${ago(now - session.updated)}</span>${session.cost ? html`<span>${money(session.cost)}</span>` : null}<${Vitals} vitals=${session.vitals} /></span>
	</a>
</li>`;

function NewSession({ folder, go, tell }) {
	const [open, setOpen] = useState(false);
	const [where, setWhere] = useState(folder);
	const [message, setMessage] = useState("");
	const [busy, setBusy] = useState(false);
	const begin = async (event) => {
		event.preventDefault();
		setBusy(true);
		try {
			const { id } = await post("api/sessions", { folder: where, message });
			go(`#/s/${encodeURIComponent(id)}`);
		} catch (error) {
			tell(error.message, "warn");
			setBusy(false);
		}
	};
	const key = (event) => {
		if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229) begin(event);
	};
	if (!open) return html`<button class="primary new" onClick=${() => setOpen(true)}>${t("page.new")}</button>`;
	return html`<form class="new-session" onSubmit=${begin} aria-label=${t("page.new")}>
		<label>${t("page.folder")}<input class="mono" value=${where} onInput=${(event) => setWhere(event.target.value)} autocomplete="off" spellcheck="false" /></label>
		<label>${t("page.first_message")}<textarea rows="3" value=${message} onInput=${(event) => setMessage(event.target.value)} onKeyDown=${key} /></label>
		<div class="choices"><button class="primary" disabled=${busy || !where.trim()}>${t("page.begin")}</button><button type="button" onClick=${() => setOpen(false)}>${t("page.cancel")}</button></div>
	</form>`;
}
