// The plan as a tree with the evidence of its steps, and its jobs with their latest output.

import { html, useState } from "./vendor/htm-preact.js";
import { Agent } from "./agents.js";
import { Sentence } from "./code.js";
import { useTick } from "./facts.js";
import { Icon, Spinner } from "./icons.js";
import { DRAFT, inSight, useSight } from "./sight.js";
import { Tail, elapsed } from "./tail.js";
import { t, visible } from "./words.js";

const MARKS = { pending: "ring", in_progress: "play", completed: "check", failed: "cross", interrupted: "pause", cancelled: "cross" };

const unverified = (step) => step.status === "completed" && !step.evidence;
const tasksOf = (step) => step.task_list?.tasks ?? [];
/** Returns what a call is about: the argument that its tool names. */
export const subject = (call) => String(call?.args?.[call.subject] ?? "");

/** The mark of a step. `halted` means that nobody works on it just now. */
const Mark = ({ status, doubted, halted }) =>
	status === "in_progress" && !halted
		? html`<${Spinner} label=${t("page.status.in_progress")} />`
		: html`<${Icon} name=${doubted ? "note" : halted && status === "in_progress" ? "pause" : MARKS[status]} label=${doubted ? t("plan.unverified") : t(`page.status.${status}`)} />`;

function Step({ step, number, numbers, halted }) {
	const tasks = tasksOf(step);
	const done = tasks.filter((task) => task.status === "completed").length;
	const after = step.depends_on.map((id) => numbers.get(id)).filter(Boolean).join(", ");
	return html`<li class=${`step s-${unverified(step) ? "unverified" : step.status}`}>
		<div class="step-head"><${Mark} status=${step.status} doubted=${unverified(step)} halted=${halted} />
			<span class="name">${number}. ${visible(step.name)}</span>
			<span class="meta">${tasks.length ? t("plan.tasks", { done, total: tasks.length }) : ""}${after ? `${tasks.length ? " · " : ""}${t("plan.after", { steps: after })}` : ""}</span></div>
		${step.description && step.description !== step.name ? html`<p class="what"><${Sentence} text=${step.description} /></p>` : null}
		${step.success && step.status !== "completed" ? html`<p class="what"><${Sentence} text=${t("plan.success", step)} /></p>` : null}
		${step.evidence ? html`<p class="evidence"><${Icon} name="check" />${visible(step.evidence)}</p>` : null}
		${unverified(step) ? html`<p class="evidence none">${t("plan.unverified")}</p>` : null}
		${tasks.length
			? html`<ul class="tasks" aria-label=${t("page.tasks")}>${tasks.map(
					(task) => html`<li><${Mark} status=${task.status} halted=${halted} /><code>${visible(task.operation)}</code> ${visible(subject(task)).slice(0, 120)}
						${task.result && task.status === "failed" ? html`<p class="what warn">${visible(task.result).slice(0, 300)}</p>` : null}</li>`,
				)}</ul>`
			: null}
	</li>`;
}

/** A plan. `status` is its present state, if it is shown as it was once proposed. */
export function PlanTree({ plan, status, halted, heading = "h3" }) {
	const numbers = new Map(plan.steps.map((step, number) => [step.step_id, number + 1]));
	const done = plan.steps.filter((step) => step.status === "completed").length;
	return html`<div class="plan">
		<${heading} class="plan-name">${visible(plan.name)} <span class=${`badge p-${status ?? plan.status}`}>${t(`plan.status.${status ?? plan.status}`)}</span><//>
		${status ? null : html`<${Progress} done=${done} total=${plan.steps.length} label=${visible(plan.name)} />`}
		${plan.goal && plan.goal !== plan.name ? html`<p class="what"><${Sentence} text=${t("plan.goal", plan)} /></p>` : null}
		<ol class="steps">${plan.steps.map((step, number) => html`<${Step} step=${step} number=${number + 1} numbers=${numbers} halted=${halted} />`)}</ol>
		${plan.status === "draft" && plan.checks?.length
			? html`<p class="what">${t("plan.checks")}</p>${plan.checks.map((check) => html`<pre class="check"><code>$ ${visible(check)}</code></pre>`)}`
			: null}
		${plan.risks?.length ? html`<p class="what"><${Sentence} text=${t("plan.risks", { risks: plan.risks.join("; ") })} /></p>` : null}
	</div>`;
}

/** A draft with the button that approves it, for as long as that very plan waits for approval. */
export function Draft({ session, plan, tell }) {
	const [problem, setProblem] = useState("");
	const [busy, setBusy] = useState(false);
	useSight(DRAFT, plan);
	const approve = async () => {
		if (!inSight(DRAFT, session, tell, true)) return;
		setBusy(true);
		await session.approve(plan).catch((error) => setProblem(error.message));
		setBusy(false);
	};
	return html`<div data-question=${DRAFT}>
		<div data-subject><${PlanTree} plan=${plan} status="draft" heading="h2" /></div>
		<footer>
			<div class="choices"><button class="primary" disabled=${busy} onClick=${approve}>${t("page.approve")}</button><span class="hint">${t("page.approve_words")}</span></div>
			${problem ? html`<p class="problem" role="alert">${visible(problem)}</p>` : null}
		</footer>
	</div>`;
}

export const Progress = ({ done, total, label }) => html`<div class="progress">
	<progress max=${total || 1} value=${done} aria-label=${label} /><span>${done}/${total}</span>
</div>`;

const LIVE = new Set(["running", "paused", "interrupted"]);
const WISHES = { running: ["pause", "cancel"], paused: ["resume", "cancel"], interrupted: ["resume", "cancel"] };
const WISH_ICONS = { pause: "pause", resume: "play", cancel: "cross" };

function Job({ job, session, tell }) {
	const [open, setOpen] = useState(false);
	useTick(1000, job.status === "running");
	const plan = session.state.plans?.[job.plan_id];
	const steps = (plan?.steps ?? []).filter((step) => job.step_ids.includes(step.step_id));
	const done = steps.filter((step) => step.status === "completed").length;
	const waits = session.questions.some((question) => question.job === job.job_id);
	const doing = steps
		.filter((step) => step.status === "in_progress")
		.map((step) => {
			const task = tasksOf(step).find((one) => one.status === "in_progress");
			return task ? `${task.operation} ${subject(task)}` : t("job.bar_preparing", { step: step.name });
		});
	const status = waits ? t("job.status.waits") : t(`job.status.${job.status}`);
	const act = (wish) => session.control(wish, job.job_id).catch((error) => tell(error.message, "warn"));
	const output = LIVE.has(job.status) && session.outputs[job.job_id];
	return html`<li class=${`job j-${job.status}${waits ? " waits" : ""}`}>
		<div class="job-head">
			<${Icon} name="job" /><b>${visible(job.name)}</b> <span class=${`badge b-${waits ? "waits" : job.status}`}>${status}</span>
			${job.status === "running" && job.began ? html`<span class="meta">${elapsed(job.began)}</span>` : null}
		</div>
		<${Progress} done=${done} total=${steps.length} label=${visible(job.name)} />
		${doing.length && job.status === "running" ? html`<p class="what now">${visible(doing.join(", "))}</p>` : null}
		${output
			? html`<${Tail} text=${output} lines=${open ? 200 : 8} /><button class="link" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${t(open ? "page.less" : "page.more_output")}</button>`
			: null}
		${job.report?.summary ? html`<p class="what">${visible(job.report.summary)}</p>` : null}
		${LIVE.has(job.status) && session.writable
			? html`<div class="choices">${WISHES[job.status].map(
					(wish) => html`<button onClick=${() => act(wish)}><${Icon} name=${WISH_ICONS[wish]} />${t(`page.job_${wish}`)}</button>`,
				)}</div>`
			: null}
	</li>`;
}

/** Says whether there are plans, jobs or agents to show. The goal of a turn and a draft stand in the conversation. */
export const hasWork = ({ plan, state }) => Boolean(plan && plan.status !== "draft") || [state.jobs, state.agents].some((workers) => Object.keys(workers ?? {}).length);

export function Work({ session, tell }) {
	const { plan } = session;
	const jobs = Object.values(session.state.jobs ?? {}).reverse();
	const agents = Object.values(session.state.agents ?? {}).reverse();
	// The plan below already says this, so it is not said twice.
	const five = Object.entries(session.state.five ?? {}).filter(([name, value]) => value?.length && !(plan && (name === "goal" || name === "plan_brief")));
	const own = jobs.filter((job) => job.plan_id === plan?.plan_id);
	const halted = !session.writable || (own.length > 0 && own.every((job) => job.status !== "running"));
	return html`
		${five.length
			? html`<section aria-labelledby="five"><h2 id="five">${t("page.five")}</h2>
					<dl class="five">${five.map(([name, value]) => html`<dt>${t(`five.${name}`)}</dt><dd>${visible([].concat(value).join("; "))}</dd>`)}</dl></section>`
			: null}
		${plan || !hasWork(session)
			? html`<section aria-labelledby="plan-title"><h2 id="plan-title">${t("page.plan")}</h2>
					${plan ? html`<${PlanTree} plan=${plan} halted=${halted} />` : html`<p class="nothing">${t("page.no_plan")}</p>`}
				</section>`
			: null}
		${agents.length
			? html`<section aria-labelledby="agents-title"><h2 id="agents-title">${t("page.agents")}</h2>
					<ul class="jobs">${agents.map((one) => html`<${Agent} key=${one.agent_id} agent=${one} session=${session} tell=${tell} />`)}</ul></section>`
			: null}
		${jobs.length
			? html`<section aria-labelledby="jobs-title"><h2 id="jobs-title">${t("page.jobs")}</h2>
					<ul class="jobs">${jobs.map((job) => html`<${Job} key=${job.job_id} job=${job} session=${session} tell=${tell} />`)}</ul></section>`
			: null}`;
}
