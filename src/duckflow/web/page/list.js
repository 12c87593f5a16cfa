// All sessions of this machine; those that wait for the person come first.

import { html, useState } from "./vendor/htm-preact.js";
import { Vitals } from "./chart.js";
import { useFacts, useTick } from "./facts.js";
import { get, post } from "./requests.js";
import { ago, money, t, thousands, visible } from "./words.js";

const MINUTE_MS = 60000;

export function SessionList({ go, tell, lock, folder }) {
	const [facts, problem] = useFacts("api/sessions", lock);
	useTick(MINUTE_MS);
	const [wanted, setWanted] = useState("");
	const [archived, setArchived] = useState(false);
	const sessions = facts?.sessions;
	const now = facts ? facts.now + (performance.now() - facts.at) / 1000 : 0;
	const words = wanted.trim().toLowerCase();
	const away = (sessions ?? []).filter((one) => one.archived).length;
	const shown = (sessions ?? []).filter((one) => (archived || !one.archived || one.state !== "old") && (!words || `${one.title} ${one.folder}`.toLowerCase().includes(words)));
	return html`<main class="page" id="main" tabindex="-1">
		<h1>${t("page.sessions")}</h1>
		<${NewSession} folder=${folder} go=${go} tell=${tell} />
		${problem ? html`<p class="problem" role="status">${visible(problem)}</p>` : null}
		${sessions?.length > 6
			? html`<label class="search"><span class="unseen">${t("page.search")}</span><input type="search" placeholder=${t("page.search")} value=${wanted} onInput=${(event) => setWanted(event.target.value)} /></label>`
			: null}
		${sessions && !shown.length ? html`<p class="nothing">${t("page.no_sessions")}</p>` : null}
		${away ? html`<label class="all"><input type="checkbox" checked=${archived} onChange=${(event) => setArchived(event.target.checked)} />${t("page.archived", { count: away })}</label>` : null}
		<ul class="sessions">${shown.map((one) => html`<${Row} key=${one.id} session=${one} now=${now} tell=${tell} />`)}</ul>
	</main>`;
}

const Row = ({ session, now, tell }) => html`<li class=${`session st-${session.state}`}>
	<a href=${`#/s/${encodeURIComponent(session.id)}`}>
		<span class=${`state st-${session.state}`}>${t(`page.state.${session.state}`)}</span>
		<span class="title">${visible(session.title || t("page.untitled"))}</span>
		${session.question ? html`<span class="question">${session.asker ? html`<span class="chip">${visible(session.asker)}</span> ` : null}${visible(session.question)}</span>` : null}
		<span class="meta"><span class="folder">${visible(session.folder)}</span><span>${ago(now - session.updated)}</span>${session.cost ? html`<span>${money(session.cost)}</span>` : null}<${Vitals} vitals=${session.vitals} /></span>
	</a>
	<${Deeds} session=${session} tell=${tell} />
</li>`;

/** What can be done to a whole session; most of it only once it has ended. */
function Deeds({ session, tell }) {
	const [open, setOpen] = useState("");
	const [title, setTitle] = useState(session.title);
	const path = `api/sessions/${encodeURIComponent(session.id)}`;
	const act = (what, body) =>
		post(`${path}/${what}`, body).then(
			(done) => {
				setOpen("");
				if (done.id) location.hash = `#/s/${encodeURIComponent(done.id)}`;
			},
			(error) => tell(error.message, "warn"),
		);
	const named = (event) => (event.preventDefault(), act("rename", { title }));
	const button = (name, onClick, kind = "") => html`<button class=${kind} onClick=${onClick}>${t(`page.session_${name}`)}</button>`;
	if (!open) return html`<button class="tool more" aria-label=${t("page.session_more", { title: session.title })} title=${t("page.session_more", { title: session.title })} onClick=${() => setOpen("menu")}>⋯</button>`;
	return html`<div class="deeds">
		${open === "rename"
			? html`<form onSubmit=${named}><label class="unseen" for=${`title-${session.id}`}>${t("page.session_rename")}</label>
					<input id=${`title-${session.id}`} value=${title} maxlength="100" onInput=${(event) => setTitle(event.target.value)} /><button class="primary">${t("page.session_rename")}</button></form>`
			: open === "remove"
				? html`<p class="warn">${t("page.session_sure")}</p>${button("remove", () => act("remove"), "bad")}`
				: html`${session.state === "old"
						? html`${button("rename", () => setOpen("rename"))}${button("fork", () => act("fork"))}${button(session.archived ? "unarchive" : "archive", () => act("archive", { away: !session.archived }))}${button("remove", () => setOpen("remove"))}`
						: null}
					${["html", "md"].map((form) => html`<a class="button" href=${`${path}/export?format=${form}`} download>${t(`page.session_${form}`)}</a>`)}`}
		<button onClick=${() => setOpen("")}>${t("page.cancel")}</button>
	</div>`;
}

const MODES = ["", "ask", "auto-edit", "auto", "plan", "full-auto"];

function NewSession({ folder, go, tell }) {
	const [open, setOpen] = useState(false);
	const [where, setWhere] = useState(folder);
	const [message, setMessage] = useState("");
	const [mode, setMode] = useState("");
	const [model, setModel] = useState("");
	const [models, setModels] = useState([]);
	const [busy, setBusy] = useState(false);
	const start = () => {
		setOpen(true);
		get("api/models").then(setModels, () => {});
	};
	const begin = async (event) => {
		event.preventDefault();
		setBusy(true);
		try {
			const { id } = await post("api/sessions", { folder: where, message, mode, model });
			go(`#/s/${encodeURIComponent(id)}`);
		} catch (error) {
			tell(error.message, "warn");
			setBusy(false);
		}
	};
	const key = (event) => {
		if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229) begin(event);
	};
	const about = ({ window, price }) => [window ? t("page.model_window", { window: thousands(window) }) : "", price ? t("page.model_price", { input: price[0], output: price[1] }) : ""].filter(Boolean).join(" · ");
	if (!open) return html`<button class="primary new" onClick=${start}>${t("page.new")}</button>`;
	return html`<form class="new-session" onSubmit=${begin} aria-label=${t("page.new")}>
		<label>${t("page.folder")}<input class="mono" value=${where} onInput=${(event) => setWhere(event.target.value)} autocomplete="off" spellcheck="false" /></label>
		<${Folders} choose=${setWhere} />
		<label>${t("page.model")}<input list="models" value=${model} placeholder=${t("page.model_default")} onInput=${(event) => setModel(event.target.value)} autocomplete="off" spellcheck="false" /></label>
		<datalist id="models">${models.map((one) => html`<option value=${one.name}>${about(one)}</option>`)}</datalist>
		<label>${t("page.mode")}<select value=${mode} onChange=${(event) => setMode(event.target.value)}>${MODES.map((one) => html`<option value=${one}>${one || t("page.mode_default")}</option>`)}</select></label>
		<label>${t("page.first_message")}<textarea rows="3" value=${message} onInput=${(event) => setMessage(event.target.value)} onKeyDown=${key} /></label>
		<div class="choices"><button class="primary" disabled=${busy || !where.trim()}>${t("page.begin")}</button><button type="button" onClick=${() => setOpen(false)}>${t("page.cancel")}</button></div>
	</form>`;
}

/** Folders that were worked in last, and those below the home. */
function Folders({ choose }) {
	const [shown, setShown] = useState(null);
	const [problem, setProblem] = useState("");
	const look = (at) => get(`api/folders?${new URLSearchParams({ at })}`).then((found) => (setShown(found), setProblem(""), at && choose(found.at)), (error) => setProblem(error.message));
	return html`<details class="folders" onToggle=${(event) => event.target.open && !shown && look("")}><summary>${t("page.browse")}</summary>
		${problem ? html`<p class="problem" role="alert">${visible(problem)}</p>` : null}
		${shown?.recent.length ? html`<p class="meta">${t("page.recent")}</p><ul class="plain">${shown.recent.map((one) => html`<li><button type="button" class="link mono" onClick=${() => choose(one)}>${visible(one)}</button></li>`)}</ul>` : null}
		${shown ? html`<p class="meta mono">${visible(shown.at)}</p><ul class="plain below">${shown.above ? html`<li><button type="button" class="link mono" onClick=${() => look(shown.above)}>..</button></li>` : null}
			${shown.folders.map((name) => html`<li><button type="button" class="link mono" onClick=${() => look(`${shown.at}/${name}`)}>${visible(name)}</button></li>`)}</ul>` : null}
	</details>`;
}
