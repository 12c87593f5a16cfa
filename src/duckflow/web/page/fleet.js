// The fleet: what its attempts ask, in one inbox, how far its tasks are, and what a person does about them.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { LaterDiff } from "./diff.js";
import { Icon, Spinner } from "./icons.js";
import { useFacts, useTick } from "./facts.js";
import { Card } from "./question.js";
import { get, post } from "./requests.js";
import { clock, duration, money, moment, t, thousands, visible } from "./words.js";

const SIGNS = { done: "check", merged: "check", failed: "cross", cancelled: "cross", budget: "warn", choose: "gate", queued: "ring", waiting: "ring" };

export function Fleet({ tell, lock }) {
	const [open, setOpen] = useState([]);
	const [data, problem, again] = useFacts(`api/fleet?${new URLSearchParams(open.map((place) => ["open", place]))}`, lock);
	useTick(1000, (data?.fleets ?? []).some((fleet) => !fleet.ended));
	const look = (place, looks) => setOpen((places) => [...places.filter((other) => other !== place), ...(looks ? [place] : [])]);
	const common = { again, tell, look, closely: data?.closely ?? {} };
	const asked = data?.asked ?? [];
	useEffect(() => {
		document.title = `${asked.length ? "● " : ""}${t("page.fleet")} · Duckflow`;
	}, [asked.length]);
	// Of those that ask the same one is shown, and says how many wait behind it.
	const shown = asked.filter((one, place) => !one.same || asked.findIndex((other) => other.same === one.same) === place);
	return html`<main class="page fleet" id="main" tabindex="-1">
		<h1>${t("page.fleet")}</h1>
		${problem ? html`<p class="problem" role="status">${visible(problem)}</p>` : null}
		<section aria-labelledby="inbox"><h2 id="inbox">${t("page.inbox")} ${asked.length ? html`<span class="count">${asked.length}</span>` : null}</h2>
			${data && !asked.length ? html`<p class="nothing">${t("page.inbox_empty")}</p>` : null}
			${shown.map((one, place) => html`<${Asked} key=${one.asked_id} asked=${one} same=${one.same ? asked.filter((other) => other.same === one.same).length - 1 : 0} first=${place === 0} again=${again} tell=${tell} />`)}
		</section>
		${(data?.fleets ?? []).map((fleet) => html`<${FleetTasks} key=${fleet.fleet} fleet=${fleet} ...${common} />`)}
		${data && !data.fleets.length ? html`<p class="nothing">${t("page.no_fleet")}</p>` : null}
	</main>`;
}

function Asked({ asked, same, first, again, tell }) {
	const [all, setAll] = useState(false);
	const { question, task, attempt } = asked;
	const desk = {
		writable: true,
		answer: async (_, answer) => {
			const taken = await post("api/fleet/answer", { asked: asked.asked_id, for_all_same: all, ...answer });
			again();
			return { told: taken.taken === "closed" ? [t("question.elsewhere")] : [], ...taken };
		},
	};
	return html`<div class="asked">
		<p class="whose"><b>${visible(task)}</b> <span class="meta">${t("page.attempt", { number: attempt })}</span></p>
		${same ? html`<label class="all"><input type="checkbox" checked=${all} onChange=${(event) => setAll(event.target.checked)} />${t("page.all_same", { count: same })}</label>` : null}
		<${Card} question=${question} session=${desk} first=${first} alone=${true} tell=${tell} />
	</div>`;
}

const Sign = ({ state }) => (state === "running" ? html`<${Spinner} label=${t("fleet.state.running")} />` : html`<${Icon} name=${SIGNS[state] ?? "ring"} label=${t(`fleet.state.${state}`)} />`);

/** What can be done; a second click does it, once it was said what happens then. */
function Deeds({ deeds, place, doing, again, tell }) {
	const [sure, setSure] = useState(null);
	const leave = useRef(null);
	useEffect(() => leave.current?.focus(), [sure]);
	const change = async ({ what, more }) => {
		setSure(null);
		await post("api/fleet/change", { what, ...place, ...more }).catch((error) => tell(error.message, "warn"));
		again();
	};
	if (doing === "merge" || doing === "cancel") return html`<p class="what" role="status"><${Spinner} /> ${t(`page.doing_${doing}`)}</p>`;
	if (sure)
		return html`<div class="sure" role="group" aria-label=${sure.name}><p>${visible(sure.text)}</p>
			<div class="choices"><button ref=${leave} onClick=${() => setSure(null)}>${t("page.leave_it")}</button><button class=${sure.what === "cancel" ? "bad" : "primary"} onClick=${() => change(sure)}>${sure.name}</button></div></div>`;
	return deeds.length ? html`<div class="choices">${deeds.map((one) => html`<button onClick=${() => (one.text ? setSure(one) : change(one))}>${one.name}</button>`)}</div>` : null;
}

const live = (one) => one.state === "running" || one.state === "queued" || one.state === "waiting";
const deed = (what, about, values) => ({ what, name: t(`page.fleet_${about}`), text: t(`page.sure_${about}`, values) });

function FleetTasks({ fleet, ...common }) {
	const picked = fleet.tasks.filter((task) => task.state === "done").length;
	const deeds = [picked > 1 && deed("merge", "merge_all"), !fleet.ended && deed("cancel", "cancel", { task: fleet.fleet })].filter(Boolean);
	return html`<section aria-label=${fleet.fleet}>
		<h2>${visible(fleet.fleet)}</h2>
		<p class="meta">${moment(fleet.started)} · ${t("page.tokens", { tokens: thousands(fleet.tokens) })}${fleet.cost_usd ? ` · ${money(fleet.cost_usd)}` : ""}${fleet.budget_usd ? ` / ${money(fleet.budget_usd)}` : ""}</p>
		<${Deeds} deeds=${deeds} place=${{ fleet: fleet.fleet }} doing=${fleet.doing} ...${common} />
		${fleet.told ? html`<p class="what came" role="status">${visible(fleet.told)}</p>` : null}
		<ul class="tasks-of">${fleet.tasks.map((task) => html`<${Task} key=${task.name} task=${task} fleet=${fleet.fleet} ...${common} />`)}</ul>
	</section>`;
}

function Task({ task, fleet, ...common }) {
	const place = { fleet, task: task.name };
	const chosen = { task: task.name, number: task.picked, branch: task.onto, folder: task.repository };
	const deeds = [
		task.state === "done" && deed("merge", "merge", chosen),
		!live(task) && task.state !== "merged" && deed("retry", "retry", chosen),
		live(task) && deed("cancel", "cancel", chosen),
	].filter(Boolean);
	return html`<li class="job"><div class="job-head"><${Sign} state=${task.state} /><b>${visible(task.name)}</b> <span class=${`badge b-${task.state}`}>${t(`fleet.state.${task.state}`)}</span></div>
		<p class="what">${visible(task.prompt).slice(0, 300)}</p>
		<ul class="tasks">${task.attempts.map((one) => html`<${Attempt} key=${one.number} one=${one} task=${task} place=${place} ...${common} />`)}</ul>
		${task.told ? html`<p class="what came" role="status">${visible(task.told)}</p>` : null}
		<${Deeds} deeds=${deeds} place=${place} doing=${task.doing} ...${common} />
		<${Closer} place=${place} ...${common} />
	</li>`;
}

function Attempt({ one, task, place, ...common }) {
	const seconds = one.started ? (one.ended || Date.now() / 1000) - one.started : 0;
	const picked = task.picked === one.number;
	const facts = [
		seconds ? duration(seconds) : "",
		one.cost_usd ? money(one.cost_usd) : "",
		one.files ? `+${one.added} −${one.removed}` : "",
		one.rating ? `${one.rating}/10` : "",
		...(one.checks ?? []).map((check) => `${check.code ? "✗" : "✓"} ${check.command}`),
		one.state === "running" && one.doing ? t(`fleet.doing.${one.doing}`) : "",
	].filter(Boolean);
	const deeds = [
		one.fit && (task.state === "choose" || (task.state === "done" && !picked)) && { what: "pick", name: t("page.fleet_pick") },
		live(one) && task.attempts.filter(live).length > 1 && deed("cancel", "cancel", { task: `${task.name} #${one.number}` }),
	].filter(Boolean).map((each) => ({ ...each, more: { attempt: one.number } }));
	return html`<li><${Sign} state=${one.state} />${t("page.attempt", { number: one.number })} ${t(`fleet.state.${one.state}`)}
		${one.open_questions ? html` <span class="badge b-waits">${t("job.status.waits")}</span>` : null}${picked && task.state !== "choose" ? html` <span class="badge b-running">${t("page.picked")}</span>` : null}
		<span class="meta"> ${visible(facts.join(" · "))}</span>
		${one.session_id ? html` <a href=${`#/s/${encodeURIComponent(one.session_id)}`}>${t("page.its_session")}</a>` : null}
		${one.open ? html`<p class="what warn">${visible(one.open)}</p>` : null}
		<${Deeds} deeds=${deeds} place=${place} ...${common} /></li>`;
}

/** What came of the attempts, side by side and one by one, and the log; told while somebody looks. */
function Closer({ place, closely, look }) {
	const name = `${place.fleet}/${place.task}`;
	const data = closely[name];
	const path = `api/fleet/diff?${new URLSearchParams(place)}`;
	return html`<details class="closer" onToggle=${(event) => look(name, event.target.open)}><summary>${t("page.closer")}</summary>
		${data?.problem ? html`<p class="problem">${visible(data.problem)}</p>` : null}
		${data?.attempts?.length > 1 ? html`<div class="wide" tabindex="0" role="region" aria-label=${t("page.side_by_side")}><table class="data">${data.rows.map((row, at) => html`<tr>${row.map((cell, column) => ((at && column) || !cell ? html`<td>${visible(cell)}</td>` : html`<th scope=${at ? "row" : "col"}>${visible(cell)}</th>`))}</tr>`)}</table></div>` : null}
		${(data?.attempts ?? []).map((report, at) => html`<${Report} key=${data.numbers[at]} report=${report} number=${data.numbers[at]} path=${path} />`)}
		${data?.lines?.length ? html`<h3>${t("page.log")}</h3><pre class="out" tabindex="0">${visible(data.lines.map((line) => `${clock(line.at)} #${line.attempt} ${line.said}`).join("\n"))}</pre>` : null}
	</details>`;
}

function Report({ report, number, path }) {
	const facts = [
		["fleet.row.checks", report.checks.map((check) => `${check.code ? "✗" : "✓"} ${check.command}${check.code ? ` (${check.code})\n${check.output}` : ""}`)],
		["fleet.row.against", report.findings],
		["fleet.row.evidence", report.evidence],
		["fleet.row.files", report.files.map((file) => `${file.path} (+${file.added} −${file.removed})`)],
		["page.touched_outside", report.touched_outside],
		["fleet.row.cost", [money(report.cost_usd), t("page.tokens", { tokens: thousands(report.tokens) }), duration(report.seconds)].filter(Boolean)],
		["page.found", report.said ? [report.said] : []],
	].filter(([, lines]) => lines.length);
	return html`<h3>${t("page.attempt", { number })} <span class="meta">${visible(report.branch)} ${report.commit.slice(0, 12)}</span></h3>
		<dl class="five">${facts.map(([name, lines]) => html`<dt>${t(name)}</dt><dd>${visible(lines.join("\n"))}</dd>`)}</dl>
		${report.commit ? html`<${LaterDiff} read=${() => get(`${path}&attempt=${number}`)} />` : null}`;
}
