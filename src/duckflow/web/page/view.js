// The page of one session: the conversation, the questions, the input line, and the panels beside it.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { Vitals } from "./chart.js";
import { Composer } from "./composer.js";
import { Guard } from "./guard.js";
import { Duck, Icon } from "./icons.js";
import { Audit, Changes, Health, Layers } from "./panels.js";
import { Work, hasWork } from "./plan.js";
import { Card, subjectOf } from "./question.js";
import { mark, notify } from "./notices.js";
import { Session } from "./session.js";
import { MODES } from "./start.js";
import { SwitchButton, Switcher } from "./switcher.js";
import { Talk, asText } from "./talk.js";
import { Theme } from "./theme-switch.js";
import { get, post } from "./requests.js";
import { money, setWords, spoken, t, thousands, visible } from "./words.js";

const PANELS = { work: Work, changes: Changes, health: Health, audit: Audit, layers: Layers };
const READ = { changes: "changes", health: "chart", audit: "audit", layers: "context" };
const NAMES = ["talk", ...Object.keys(PANELS)];
const WIDE = matchMedia("(min-width: 1000px)");

async function speak(language) {
	const me = await get(`api/me?language=${language}`);
	setWords(me.words, me.language);
}

/** Returns the session, and draws again whenever it has changed. */
function useSession(id, lock) {
	const [, draw] = useState(0);
	const [problem, setProblem] = useState("");
	const kept = useRef(null);
	if (kept.current?.id !== id) {
		kept.current?.close();
		kept.current = new Session(id, () => draw((count) => count + 1));
	}
	useEffect(() => {
		kept.current.open().catch((error) => (error.status === 401 ? lock() : setProblem(error.message)));
		return () => kept.current.close();
	}, [id]);
	return [kept.current, problem];
}

export function SessionPage({ id, panel, at, go, tell, lock, alone, facts, waits, fleetAsks }) {
	const [session, problem] = useSession(id, lock);
	const [wide, setWide] = useState(WIDE.matches);
	const [side, setSide] = useState(localStorage.getItem("duckflow-side") !== "closed");
	const [listed, setListed] = useState(WIDE.matches && localStorage.getItem("duckflow-list") === "open");
	const told = useAnnouncements(session);
	const shown = wide && panel === "talk" ? "work" : panel;
	// An empty column takes no room, unless the person opens it.
	const beside = wide && (panel !== "talk" || (side && hasWork(session)));
	useEffect(() => session.show(READ[shown] ?? ""), [session, shown]);
	useEffect(() => {
		const change = () => setWide(WIDE.matches);
		WIDE.addEventListener("change", change);
		return () => WIDE.removeEventListener("change", change);
	}, []);
	useEffect(() => {
		if (session.link === "refused" && session.problem?.status === 401) lock();
	}, [session.link]);
	useEffect(() => {
		if (at && session.link === "open") session.seek(at);
	}, [at, session.link === "open"]);
	const title = session.title || t("page.untitled");
	useEffect(() => {
		document.title = `${session.waitsFor || waits ? "● " : ""}${title} · Duckflow`;
		mark(session.waitsFor + waits > 0);
	}, [title, session.waitsFor, waits > 0]);
	const [asked] = session.questions;
	useEffect(() => {
		if (session.waitsFor) notify(title, asked ? `${asked.title} ${subjectOf(asked)}` : session.state.asked || t("page.state.waiting"));
	}, [asked?.question_id, session.waitsFor]);
	useEffect(() => {
		// A language chosen in the conversation becomes the page's, too.
		if (session.language && session.language !== spoken()) speak(session.language).then(() => session.draw());
	}, [session.language]);
	if (problem || !session.known) return html`<${Closed} id=${id} problem=${problem} />`;
	const Panel = PANELS[shown];
	const show = (name) => go(`#/s/${encodeURIComponent(id)}/${name}`);
	const toggle = () => {
		localStorage.setItem("duckflow-side", beside ? "closed" : "open");
		setSide(!beside);
		const first = session.state.files_changed?.length && !hasWork(session) ? "changes" : "work";
		show(beside ? "talk" : first);
	};
	const list = (open) => {
		if (wide) localStorage.setItem("duckflow-list", open ? "open" : "closed");
		setListed(open);
	};
	// Anything over the conversation makes way for a question.
	session.uncover = () => {
		if (wide) return;
		setListed(false);
		if (panel !== "talk") show("talk");
	};
	const tabs = (names) => html`<${Tabs} names=${names} shown=${shown} show=${show} session=${session} />`;
	const content = Panel
		? html`<div class="panel" role="tabpanel" aria-labelledby=${`tab-${shown}`} tabindex="0">
				<${Guard} key=${shown}><${Panel} session=${session} tell=${tell} wide=${wide} /><//>
			</div>`
		: null;
	return html`<div class=${`session-page${beside ? ` side-${shown}` : ""}${listed ? " with-list" : ""}`}>
		<${Head} session=${session} title=${title} wide=${wide} side=${beside} toggle=${toggle} tell=${tell} alone=${alone}>
			${alone ? null : html`<${SwitchButton} waits=${waits} open=${listed} toggle=${() => list(!listed)} />`}
		<//>
		${listed ? html`<${Switcher} id=${id} facts=${facts} fleetAsks=${fleetAsks} chosen=${() => wide || list(false)} />` : null}
		<main class="main" id="main" tabindex="-1">
			${wide ? null : tabs(NAMES)}
			<div class="talking" hidden=${!wide && panel !== "talk"}>
				<${Talk} session=${session} tell=${tell}>
					${session.questions.map(
						(question) => html`<${Card}
							key=${question.question_id}
							question=${question}
							session=${session}
							first=${question === session.target}
							tell=${tell}
						/>`,
					)}
				<//>
				<${Foot} session=${session} tell=${tell} />
			</div>
			${wide || !content ? null : html`<${Lost} session=${session} />${content}`}
		</main>
		${beside ? html`<aside class="side" aria-label=${t("page.beside")}>${tabs(Object.keys(PANELS))}${content}</aside>` : null}
		<div class="unseen" role="status" aria-live="polite">${told}</div>
	</div>`;
}

const Closed = ({ id, problem }) => html`<main class="page" id="main" tabindex="-1">
	${problem
		? html`<h1>${visible(id)}</h1>
				<p class="problem" role="alert">${visible(problem)}</p>
				<a href="#/">${t("page.sessions")}</a>`
		: html`<p class="nothing">${t("page.opening")}</p>`}
</main>`;

/** The texts that a screen reader speaks by itself: questions, and what was said. */
function useAnnouncements(session) {
	const open = session.questions.map((one) => one.title).join(". ");
	const said = session.items.list.findLast((item) => item.by === "model");
	const [first] = useState({ said: undefined });
	if (session.known && first.said === undefined) first.said = said?.k ?? 0;
	if (open) return `${t("page.asks")} ${visible(open)}`;
	if (!said || said.k === first.said) return "";
	return asText(said.html);
}

const atWork = ({ state, writable }) => {
	const workers = [...Object.values(state.jobs ?? {}), ...Object.values(state.agents ?? {})];
	return writable ? workers.filter((worker) => worker.status === "running").length : 0;
};

function Tabs({ names, shown, show, session }) {
	const move = (event) => {
		const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
		if (!step) return;
		event.preventDefault();
		const name = names[(names.indexOf(shown) + step + names.length) % names.length];
		show(name);
		setTimeout(() => document.getElementById(`tab-${name}`)?.focus(), 30);
	};
	const count = { talk: session.waitsFor, changes: session.state.files_changed?.length, work: atWork(session) };
	const tab = (name) => html`<button
		role="tab"
		id=${`tab-${name}`}
		aria-selected=${String(name === shown)}
		tabindex=${name === shown ? 0 : -1}
		onClick=${() => show(name)}
	>
		${t(`page.tab.${name}`)}${count[name] ? html` <span class=${`count${name === "talk" ? "" : " quiet"}`}>${count[name]}</span>` : null}
	</button>`;
	return html`<div class="tabs" role="tablist" aria-label=${t("page.views")} onKeyDown=${move}>${names.map(tab)}</div>`;
}

function Head({ session, title, wide, side, toggle, tell, alone, children }) {
	const { state, mode, model, writable } = session;
	const usage = state.usage ?? {};
	const tokens = (usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0);
	const name = (model ?? "").split(":").at(-1).split("/").at(-1);
	const change = (event) => session.chooseMode(event.target.value).catch((error) => tell(error.message, "warn"));
	const sessions = t("page.sessions");
	const changed = state.files_changed?.length;
	return html`<header class="head">
		${alone
			? html`<span class="back"><${Duck} /></span>`
			: html`<a class="back" href="#/" aria-label=${sessions} title=${sessions}><${Icon} name="back" /><${Duck} /></a>`}
		${children}
		<div class="titles">
			<h1>${visible(title)}</h1>
			<p class="meta"><span class="folder">${visible(state.folder)}</span></p>
		</div>
		<div class="facts-line">
			<${Vitals} vitals=${state.vitals} />
			${name ? html`<span class="meta model" title=${visible(model)}>${visible(name)}</span>` : null}
			${tokens ? html`<span class="meta tokens">${t("page.tokens", { tokens: thousands(tokens) })}</span>` : null}
			${usage.cost_usd ? html`<span class="meta">${money(usage.cost_usd)}</span>` : null}
			${mode
				? html`<label class="mode">
						<span class="unseen">${t("page.mode")}</span>
						<select value=${mode} disabled=${!writable} onChange=${change} title=${t("page.mode")}>
							${MODES.map((one) => html`<option value=${one} selected=${one === mode}>${one}</option>`)}
						</select>
					</label>`
				: null}
			${wide
				? html`<button class="tool side-button" aria-pressed=${String(side)} aria-label=${t("page.beside")} title=${t("page.beside")} onClick=${toggle}>
						<${Icon} name="side" />${changed && !side ? html`<span class="count quiet">${changed}</span>` : null}
					</button>`
				: null}
			<${Theme} />
		</div>
	</header>`;
}

/** Says that the facts on screen may be old. */
function Lost({ session: { link, problem, stream } }) {
	if (link === "open" || link === "opening") return null;
	return html`<p class="link-lost" role="status">
		${link === "refused" ? visible(problem.message) : html`${t(link === "lost" ? "page.lost" : "page.gone")} <button class="link" onClick=${() => stream.open()}>${t("page.try_again")}</button>`}
	</p>`;
}

function Foot({ session, tell }) {
	const [busy, setBusy] = useState(false);
	const goOn = async () => {
		setBusy(true);
		try {
			await post("api/sessions", { session: session.id });
			session.stream.open();
		} catch (error) {
			tell(error.message, "warn");
		}
		setBusy(false);
	};
	return html`<div class="foot">
		<${Lost} session=${session} />
		${session.writable
			? html`<${Composer} session=${session} tell=${tell} />`
			: html`<div class="read-only">
					<p>${t("page.read_only")}</p>
					<button class="primary" disabled=${busy} onClick=${goOn}>${t("page.go_on")}</button>
				</div>`}
	</div>`;
}
