// One task of a fleet: its attempts, their results side by side and one by one, and its log.

import { html } from "./vendor/htm-preact.js";
import { LaterDiff } from "./diff.js";
import { Deeds, Sign, deed, live, timeOf } from "./fleet-deeds.js";
import { get } from "./requests.js";
import { clock, duration, money, t, thousands, visible } from "./words.js";

export function Task({ task, fleet, ...common }) {
	const place = { fleet, tasks: [task.name] };
	const chosen = { task: task.name, number: task.picked, branch: task.onto, folder: task.repository };
	const deeds = [
		task.state === "done" && { ...deed("merge", "merge", chosen), more: { attempt: task.picked } },
		!live(task) && task.state !== "merged" && deed("retry", "retry", chosen),
		live(task) && deed("cancel", "cancel", chosen),
	].filter(Boolean);
	return html`<div class="job">
		<p class="what">${visible(task.prompt)}</p>
		<ul class="tasks">
			${task.attempts.map((attempt) => html`<${Attempt} key=${attempt.number} attempt=${attempt} task=${task} place=${place} ...${common} />`)}
		</ul>
		${task.told ? html`<p class="what came" role="status">${visible(task.told)}</p>` : null}
		<${Deeds} deeds=${deeds} place=${place} doing=${task.doing} ...${common} />
		<${Closer} fleet=${fleet} task=${task.name} ...${common} />
	</div>`;
}

function Attempt({ attempt, task, place, ...common }) {
	const picked = task.picked === attempt.number;
	const facts = [
		timeOf([attempt]),
		money(attempt.cost_usd),
		attempt.files ? `+${attempt.added} −${attempt.removed}` : "",
		attempt.rating ? `${attempt.rating}/10` : "",
		...(attempt.checks ?? []).map((check) => `${check.code ? "✗" : "✓"} ${check.command}`),
		attempt.state === "running" && attempt.doing ? t(`fleet.doing.${attempt.doing}`) : "",
	].filter(Boolean);
	const fits = attempt.fit && (task.state === "choose" || (task.state === "done" && !picked));
	const several = live(attempt) && task.attempts.filter(live).length > 1;
	const deeds = [
		fits && { what: "pick", name: t("page.fleet_pick") },
		several && deed("cancel", "cancel", { task: `${task.name} #${attempt.number}` }),
	]
		.filter(Boolean)
		.map((each) => ({ ...each, more: { attempt: attempt.number } }));
	return html`<li>
		<${Sign} state=${attempt.state} />${t("page.attempt", { number: attempt.number })} ${t(`fleet.state.${attempt.state}`)}
		${attempt.open_questions ? html` <span class="badge b-waits">${t("job.status.waits")}</span>` : null}
		${picked && task.state !== "choose" ? html` <span class="badge b-running">${t("page.picked")}</span>` : null}
		<span class="meta"> ${visible(facts.join(" · "))}</span>
		${attempt.session_id ? html` <a href=${`#/s/${encodeURIComponent(attempt.session_id)}`}>${t("page.its_session")}</a>` : null}
		${attempt.open ? html`<p class="what warn">${visible(attempt.open)}</p>` : null}
		<${Deeds} deeds=${deeds} place=${place} ...${common} />
	</li>`;
}

/** Shows the results of the attempts, side by side and one by one, and the log, kept up to date while it is open. */
function Closer({ fleet, task, closely, look }) {
	const name = `${fleet}/${task}`;
	const data = closely[name];
	const path = `api/fleet/diff?${new URLSearchParams({ fleet, task })}`;
	const lines = (data?.lines ?? []).map((line) => `${clock(line.at)} #${line.attempt} ${line.said}`);
	return html`<details class="closer" onToggle=${(event) => look(name, event.target.open)}>
		<summary>${t("page.closer")}</summary>
		${data?.problem ? html`<p class="problem">${visible(data.problem)}</p>` : null}
		${data?.attempts?.length > 1 ? html`<${SideBySide} rows=${data.rows} />` : null}
		${(data?.attempts ?? []).map(
			(report, place) => html`<${Report} key=${data.numbers[place]} report=${report} number=${data.numbers[place]} path=${path} />`,
		)}
		${lines.length ? html`<h3>${t("page.log")}</h3><pre class="out" tabindex="0">${visible(lines.join("\n"))}</pre>` : null}
	</details>`;
}

const SideBySide = ({ rows }) => html`<div class="wide md" tabindex="0" role="region" aria-label=${t("page.side_by_side")}>
	<table>
		${rows.map(
			(row, at) => html`<tr>
				${row.map((cell, column) =>
					(at && column) || !cell ? html`<td>${visible(cell)}</td>` : html`<th scope=${at ? "row" : "col"}>${visible(cell)}</th>`,
				)}
			</tr>`,
		)}
	</table>
</div>`;

const checked = ({ code, command, output }) => `${code ? "✗" : "✓"} ${command}${code ? ` (${code})\n${output}` : ""}`;

function Report({ report, number, path }) {
	const facts = [
		["fleet.row.checks", report.checks.map(checked)],
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
