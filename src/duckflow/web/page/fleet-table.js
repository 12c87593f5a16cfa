// The tasks of a fleet in a table: counted, filtered, chosen and acted upon together.

import { Component, html, useState } from "./vendor/htm-preact.js";
import { Deeds, Sign, deed, live, timeOf } from "./fleet-deeds.js";
import { Task } from "./fleet-task.js";
import { Progress } from "./plan.js";
import { money, moment, t, thousands, visible } from "./words.js";

const LEAST_MAPPED = 20;
const OVER = new Set(["choose", "done", "merged", "failed", "cancelled"]);

const asking = (task) => task.attempts.some((attempt) => attempt.open_questions);

/** Returns the kinds of tasks that occur, with how many there are of each. */
const countsOf = (tasks) => {
	const counts = new Map();
	for (const task of tasks) for (const kind of [task.state, ...(asking(task) ? ["asks"] : [])]) counts.set(kind, (counts.get(kind) ?? 0) + 1);
	return [...counts];
};

export function FleetTasks({ fleet, tasks, ...common }) {
	const [filter, setFilter] = useState("");
	const [wanted, setWanted] = useState("");
	const [chosen, setChosen] = useState(() => new Set());
	const [open, setOpen] = useState(() => new Set());
	const words = wanted.trim().toLowerCase();
	const fits = (task) => (!filter || task.state === filter || (filter === "asks" && asking(task))) && (!words || `${task.name} ${task.prompt}`.toLowerCase().includes(words));
	const shown = tasks.filter(fits);
	const picked = shown.filter((task) => chosen.has(task.name));
	const done = tasks.filter((task) => OVER.has(task.state)).length;
	// A row keeps the function of its last drawing, so it must not hold the set of then.
	const flip = (change) => (name, on) => change((set) => new Set([...set].filter((other) => other !== name).concat(on ? name : [])));
	const choose = flip(setChosen);
	const unfold = flip(setOpen);
	const show = (name) => {
		unfold(name, true);
		setTimeout(() => document.getElementById(`task-${fleet.fleet}-${name}`)?.scrollIntoView({ block: "center" }), 50);
	};
	const all = tasks.filter((task) => task.state === "done").length;
	const deeds = [all > 1 && deed("merge", "merge_all"), !fleet.ended && { ...deed("cancel", "cancel", { task: fleet.fleet }), name: t("page.fleet_cancel_all") }].filter(Boolean);
	const facts = [moment(fleet.started), t("page.tokens", { tokens: thousands(fleet.tokens) }), money(fleet.cost_usd)].filter(Boolean);
	return html`<section class="fleet-of" aria-label=${fleet.fleet}>
		<h2>${visible(fleet.fleet)}</h2>
		<p class="meta">${facts.join(" · ")}${fleet.budget_usd ? ` / ${money(fleet.budget_usd)}` : ""}</p>
		<${Progress} done=${done} total=${tasks.length} label=${fleet.fleet} />
		<${Deeds} deeds=${deeds} place=${{ fleet: fleet.fleet }} doing=${fleet.doing} ...${common} />
		${fleet.told ? html`<p class="what came" role="status">${visible(fleet.told)}</p>` : null}
		${tasks.length >= LEAST_MAPPED ? html`<${TaskMap} tasks=${tasks} show=${show} />` : null}
		<div class="filters" role="group" aria-label=${t("page.fleet_filter")}>
			${[["", tasks.length], ...countsOf(tasks)].map(
				([kind, count]) => html`<button aria-pressed=${String(filter === kind)} onClick=${() => setFilter(kind)}>
					${kind ? html`<i class=${`m-${kind}`} aria-hidden="true" />` : null}${t(kind === "asks" ? "job.status.waits" : kind ? `fleet.state.${kind}` : "page.fleet_all")} ${count}
				</button>`,
			)}
			${tasks.length > 6
				? html`<input type="search" aria-label=${t("page.fleet_find")} placeholder=${t("page.fleet_find")} value=${wanted} onInput=${(event) => setWanted(event.target.value)} />`
				: null}
		</div>
		${picked.length ? html`<${Bulk} fleet=${fleet.fleet} tasks=${picked} clear=${() => setChosen(new Set())} ...${common} />` : null}
		<div class="wide">
			<table class="tasks-of">
				<thead>
					<tr>
						<th>
							<input
								type="checkbox"
								aria-label=${t("page.fleet_choose_all")}
								checked=${shown.length > 0 && picked.length === shown.length}
								onChange=${(event) => setChosen(new Set(event.target.checked ? shown.map((task) => task.name) : []))}
							/>
						</th>
						${["task", "state", "changes", "cost", "time"].map((name) => html`<th scope="col">${t(`page.fleet_${name}`)}</th>`)}
					</tr>
				</thead>
				${shown.map(
					(task) => html`<${Row}
						key=${task.name}
						id=${`task-${fleet.fleet}-${task.name}`}
						task=${task}
						fleet=${fleet.fleet}
						chosen=${chosen.has(task.name)}
						open=${open.has(task.name)}
						choose=${choose}
						unfold=${unfold}
						common=${common}
					/>`,
				)}
			</table>
		</div>
	</section>`;
}

/** Shows every task as a square: a large fleet at a glance. The table says the same to people who cannot see. */
const TaskMap = ({ tasks, show }) => html`<div class="map" aria-hidden="true">
	${tasks.map((task) => html`<i class=${`m-${asking(task) ? "asks" : task.state}`} title=${`${visible(task.name)}: ${t(`fleet.state.${task.state}`)}`} onClick=${() => show(task.name)} />`)}
</div>`;

const sum = (task, name) => task.attempts.reduce((total, attempt) => total + (attempt[name] || 0), 0);

/** A row, drawn again only when its task has changed, or while it runs. */
class Row extends Component {
	shouldComponentUpdate(next) {
		const { task, chosen, open, common } = this.props;
		return next.task !== task || next.chosen !== chosen || next.open !== open || live(task) || (next.open && next.common.closely !== common.closely);
	}

	render({ id, task, fleet, chosen, open, choose, unfold, common }) {
		const best = task.attempts.find((attempt) => attempt.number === task.picked) ?? task.attempts.at(-1);
		const doing = task.attempts.find((attempt) => attempt.state === "running")?.doing;
		return html`<tbody id=${id} class=${`task t-${task.state}`}>
			<tr>
				<td>
					<input type="checkbox" aria-label=${t("page.fleet_choose", { task: task.name })} checked=${chosen} onChange=${(event) => choose(task.name, event.target.checked)} />
				</td>
				<th scope="row">
					<button class="link" aria-expanded=${String(open)} onClick=${() => unfold(task.name, !open)}>${visible(task.name)}</button>
				</th>
				<td>
					<${Sign} state=${task.state} /> <span class=${`badge b-${task.state}`}>${t(`fleet.state.${task.state}`)}</span>
					${asking(task) ? html` <span class="badge b-waits">${t("job.status.waits")}</span>` : null}
					${task.attempts.length > 1 ? html` <span class="meta">×${task.attempts.length}</span>` : null}
					${doing ? html` <span class="meta">${t(`fleet.doing.${doing}`)}</span>` : null}
				</td>
				<td class="figure">${best?.files ? html`<span class="plus">+${best.added}</span> <span class="minus">−${best.removed}</span>` : null}</td>
				<td class="figure">${money(sum(task, "cost_usd"))}</td>
				<td class="figure">${timeOf(task.attempts)}</td>
			</tr>
			${open ? html`<tr><td colspan="6"><${Task} task=${task} fleet=${fleet} ...${common} /></td></tr>` : null}
		</tbody>`;
	}
}

/** Buttons for actions that fit all chosen tasks. */
function Bulk({ fleet, tasks, clear, ...common }) {
	const groups = [
		["cancel", tasks.filter(live)],
		["retry", tasks.filter((task) => !live(task) && task.state !== "merged")],
		["merge", tasks.filter((task) => task.state === "done")],
	];
	const deeds = groups
		.filter(([, fitting]) => fitting.length)
		.map(([what, fitting]) => ({
			what,
			name: `${t(`page.fleet_${what}`)} (${fitting.length})`,
			text: t(`page.sure_${what}_some`, { count: fitting.length }),
			more: { tasks: fitting.map((task) => task.name) },
		}));
	return html`<div class="bulk" role="group" aria-label=${t("page.fleet_chosen", { count: tasks.length })}>
		<span>${t("page.fleet_chosen", { count: tasks.length })}</span>
		<${Deeds} deeds=${deeds} place=${{ fleet }} ...${common} />
		<button class="link" onClick=${clear}>${t("page.fleet_choose_none")}</button>
	</div>`;
}
