// The fleets: the questions of their attempts in one inbox, their workers, and their progress.

import { html, useEffect, useState } from "./vendor/htm-preact.js";
import { useFacts, useTick } from "./facts.js";
import { NewFleet } from "./fleet-form.js";
import { FleetTasks } from "./fleet-table.js";
import { Icon } from "./icons.js";
import { useFresh } from "./notices.js";
import { Card, LONGEST_NAME, subjectOf } from "./question.js";
import { post } from "./requests.js";
import { t, visible } from "./words.js";

export function Fleet({ tell, lock, folder, asks }) {
	const [open, setOpen] = useState([]);
	const [aimed, setAimed] = useState("");
	const [data, problem, again] = useFacts(`api/fleet?${new URLSearchParams(open.map((place) => ["open", place]))}`, lock);
	const fleets = data?.fleets ?? [];
	useTick(1000, fleets.some((fleet) => !fleet.ended));
	const look = (place, looks) => setOpen((places) => [...places.filter((other) => other !== place), ...(looks ? [place] : [])]);
	const common = { again, tell, look, closely: data?.closely ?? {} };
	const asked = data?.asked ?? [];
	useFresh(data && asked.map(({ asked_id: id, task, question }) => [id, task, question.title]));
	const toPick = fleets.flatMap((fleet) => fleet.tasks.map((name) => data[`${fleet.fleet}/${name}`])).filter((task) => task?.state === "choose").length;
	useEffect(() => {
		if (data) asks(asked.length + toPick);
	}, [Boolean(data), asked.length, toPick]);
	// Of several equal questions one is shown, with the number of those behind it.
	const shown = asked.filter((one, place) => !one.same || asked.findIndex((other) => other.same === one.same) === place);
	const behind = (one) => (one.same ? asked.filter((other) => other.same === one.same).length - 1 : 0);
	return html`<main class="page fleet" id="main" tabindex="-1">
		<h1>${t("page.fleet")}</h1>
		<${NewFleet} folder=${folder} tell=${tell} began=${again} />
		${problem ? html`<p class="problem" role="status">${visible(problem)}</p>` : null}
		<section aria-labelledby="inbox">
			<h2 id="inbox">${t("page.inbox")} ${asked.length ? html`<span class="count">${asked.length}</span>` : null}</h2>
			${data && !asked.length ? html`<p class="nothing">${t("page.inbox_empty")}</p>` : null}
			${shown.map(
				(one) => html`<${Asked}
					key=${one.asked_id}
					asked=${one}
					same=${behind(one)}
					alone=${shown.length === 1}
					aimed=${shown.length === 1 || aimed === one.asked_id}
					aim=${() => setAimed(one.asked_id)}
					again=${again}
					tell=${tell}
				/>`,
			)}
		</section>
		<${Workers} workers=${data?.workers ?? []} fleets=${fleets} ...${common} />
		${fleets.map((fleet) => {
			const tasks = fleet.tasks.map((name) => data[`${fleet.fleet}/${name}`]).filter(Boolean);
			return html`<${FleetTasks} key=${fleet.fleet} fleet=${fleet} tasks=${tasks} ...${common} />`;
		})}
		${data && !fleets.length ? html`<p class="nothing">${t("page.no_fleet")}</p>` : null}
	</main>`;
}

/** One question: a line until it is opened. Number keys answer the one chosen last. */
function Asked({ asked, same, alone, aimed, aim, again, tell }) {
	const [all, setAll] = useState(false);
	const [opened, setOpened] = useState(alone);
	const { task, attempt } = asked;
	const question = { ...asked.question, question_id: asked.asked_id };
	const desk = {
		writable: true,
		aim,
		answer: async (_, answer) => {
			const taken = await post("api/fleet/answer", { asked: asked.asked_id, for_all_same: all, ...answer });
			again();
			return { told: taken.taken === "closed" ? [t("question.elsewhere")] : [], ...taken };
		},
	};
	const whose = html`<b>${visible(task)}</b> <span class="meta">${t("page.attempt", { number: attempt })}</span>`;
	if (!opened) {
		return html`<button class="asked line row-of" aria-expanded="false" onClick=${() => (aim(), setOpened(true))}>
			<${Icon} name="gate" />${whose} <span>${visible(question.title)}</span> <code>${visible(subjectOf(question)).slice(0, LONGEST_NAME)}</code>
		</button>`;
	}
	return html`<div class="asked">
		<p class="whose">${whose}</p>
		${same
			? html`<label class="all">
					<input type="checkbox" checked=${all} onChange=${(event) => setAll(event.target.checked)} />${t("page.all_same", { count: same })}
				</label>`
			: null}
		<${Card} question=${question} session=${desk} first=${aimed} alone=${true} tell=${tell} />
	</div>`;
}

/** Shows the workers that carry attempts out. A click starts one for a fleet that has none. */
function Workers({ workers, fleets, again, tell }) {
	const left = fleets.find((fleet) => !fleet.ended);
	const idle = left && !workers.some((worker) => worker.lives);
	const begin = async () => {
		await post("api/fleet/change", { what: "work", fleet: left.fleet }).catch((error) => tell(error.message, "warn"));
		again();
	};
	if (!workers.length && !idle) return null;
	return html`<section aria-labelledby="workers">
		<h2 id="workers">${t("page.workers")}</h2>
		${idle
			? html`<p class="row-of warn">
					<${Icon} name="warn" />${t("page.workers_none", { fleet: left.fleet })} <button onClick=${begin}>${t("page.workers_begin")}</button>
				</p>`
			: null}
		<ul class="workers">
			${workers.map(
				(worker) => html`<li class="row-of">
					<${Icon} name=${worker.lives ? "check" : "warn"} />
					<span class="mono">${visible(worker.worker)}</span>
					<span class=${worker.lives ? "meta" : "warn"}>
						${t(worker.lives ? "page.worker_alive" : "page.worker_silent", { count: worker.running })}
					</span>
				</li>`,
			)}
		</ul>
	</section>`;
}
