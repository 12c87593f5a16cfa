// The page as a whole: the view that is shown, the theme, and passing notices.

import { html, render, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { useFacts } from "./facts.js";
import { Fleet } from "./fleet.js";
import { Duck, Icon } from "./icons.js";
import { SessionList, waitingIn } from "./list.js";
import { Models } from "./models.js";
import { mark, useFresh } from "./notices.js";
import { SessionPage } from "./view.js";
import { Theme } from "./theme-switch.js";
import { get } from "./requests.js";
import { setWords, t, visible } from "./words.js";

const TOLD_MS = 8000;

/** Reads the address: the view, a session, the part of it that is shown, and since when. */
function place() {
	const [view, id = "", panel, at] = location.hash.replace(/^#\/?/, "").split("/");
	return { view: view || "list", id: decoded(id), panel: panel || "talk", at: Number(at) || 0 };
}

function decoded(text) {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

function App({ me }) {
	const [wanted, setWhere] = useState(place());
	// Beside a terminal the page shows that chat, whatever the address says.
	const where = me.alone && wanted.view !== "s" ? { view: "s", id: me.alone, panel: "talk", at: 0 } : wanted;
	const [told, setTold] = useState(null);
	const [locked, setLocked] = useState(false);
	const [fleetAsks, setFleetAsks] = useState(0);
	const timer = useRef(0);
	const lock = () => setLocked(true);
	// A page beside a terminal has no other sessions.
	const [facts, problem] = useFacts(me.alone ? "" : "api/sessions", lock);
	useEffect(() => setFleetAsks(facts?.fleet_asks ?? 0), [facts?.fleet_asks]);
	const others = (facts?.sessions ?? []).filter((session) => session.state === "waiting" && !(where.view === "s" && session.id === where.id));
	const waits = others.length + fleetAsks;
	// The fleets' own page shows each question itself.
	useFresh(waitingIn(facts && { fleet_asks: where.view === "fleet" ? 0 : fleetAsks }, others));
	useEffect(() => {
		if (where.view === "s") return;
		const name = { fleet: "page.fleet", models: "page.models" }[where.view];
		document.title = `${waits ? "● " : ""}${name ? `${t(name)} · ` : ""}Duckflow`;
		mark(waits > 0);
	}, [where.view, waits > 0]);
	useEffect(() => {
		const change = () => setWhere(place());
		addEventListener("hashchange", change);
		return () => removeEventListener("hashchange", change);
	}, []);
	const tell = (text, kind = "note") => {
		clearTimeout(timer.current);
		setTold({ text, kind });
		timer.current = setTimeout(() => setTold(null), TOLD_MS);
	};
	const go = (hash) => {
		location.hash = hash;
	};
	const common = { go, tell, lock, facts, problem, waits, fleetAsks, alone: Boolean(me.alone), folder: me.folder ?? "", asks: setFleetAsks };
	const skip = (event) => {
		event.preventDefault();
		document.getElementById("main")?.focus();
	};
	return html`<a class="skip" href="#main" onClick=${skip}>${t("page.skip")}</a>
		${!locked && where.view === "s"
			? html`<${SessionPage} key=${where.id} id=${where.id} panel=${where.panel} at=${where.at} ...${common} />`
			: html`<${Top} view=${where.view} fleet=${me.fleet} waits=${others.length} asks=${fleetAsks} />${locked ? html`<${Locked} />` : views(where.view, common)}`}
		<div class="told" role="status" aria-live="polite">
			${told
				? html`<p class=${told.kind}>
						${visible(told.text)}
						<button class="tool" aria-label=${t("page.close")} onClick=${() => setTold(null)}><${Icon} name="cross" /></button>
					</p>`
				: null}
		</div>`;
}

const views = (view, common) => {
	if (view === "fleet") return html`<${Fleet} ...${common} />`;
	if (view === "models") return html`<${Models} ...${common} />`;
	return html`<${SessionList} key=${view} begins=${view === "new"} ...${common} />`;
};

function Top({ view, fleet, waits, asks }) {
	const link = (name, to, count) => html`<a href=${to} aria-current=${view === name ? "page" : undefined}>
		${t({ list: "page.sessions", fleet: "page.fleet", models: "page.models" }[name])}${count ? html` <span class="count">${count}</span>` : null}
	</a>`;
	return html`<header class="top">
		<a class="brand" href="#/" aria-label="Duckflow"><${Duck} /><span>Duckflow</span></a>
		<nav aria-label=${t("page.views")}>${link("list", "#/", waits)}${fleet ? link("fleet", "#/fleet", asks) : null}${link("models", "#/models")}</nav>
		<${Theme} />
	</header>`;
}

const Locked = () => html`<main class="page" id="main" tabindex="-1">
	<h1>${t("page.locked")}</h1>
	<p>${t("page.locked_how")}</p>
</main>`;

async function begin() {
	const root = document.getElementById("app");
	try {
		const me = await get("api/me");
		setWords(me.words, me.language);
		render(html`<${App} me=${me} />`, root);
	} catch (error) {
		root.textContent = error.message;
	}
}

begin();
