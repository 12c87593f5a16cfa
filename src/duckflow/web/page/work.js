// Plans, jobs and agents of a session, kept true by events.

const ENDED = new Set(["completed", "failed", "cancelled"]);

export function applyWork(session, kind, event) {
	const { state } = session;
	const plan = state.plans?.[event.plan_id];
	const step = plan?.steps.find((one) => one.step_id === event.step_id);
	switch (kind) {
		case "plan_changed":
			// A copy: this one moves on, what stands in the conversation stays as it was.
			state.plans = { ...state.plans, [event.plan.plan_id]: structuredClone(event.plan) };
			if (event.active) state.active_plan = event.plan.plan_id;
			else if (state.active_plan === event.plan.plan_id) state.active_plan = "";
			break;
		case "tasks_planned":
			if (step) step.task_list = { tasks: event.tasks };
			break;
		case "step_changed":
			if (step) Object.assign(step, { status: event.status, evidence: event.evidence || step.evidence, found: event.found || step.found, began: step.began || event.at });
			if (plan && plan.steps.every((one) => one.status === "completed")) plan.status = "completed";
			break;
		case "task_changed": {
			const task = step?.task_list?.tasks.find((one) => one.task_id === event.task_id);
			if (task) Object.assign(task, { status: event.status, result: event.result }, event.status === "in_progress" ? { began: event.at } : { seconds: event.at - (task.began || event.at) });
			break;
		}
		case "job_started":
			state.jobs = { ...state.jobs, [event.job.job_id]: { ...event.job, began: event.job.began || event.at } };
			break;
		case "agent_started":
			state.agents = { ...state.agents, [event.agent.agent_id]: event.agent };
			break;
		case "agent_ended":
			changeAgent(state, event.agent_id, () => ({ status: event.status, report: event.report }));
			break;
		case "job_changed":
		case "job_ended":
			if (state.jobs?.[event.job_id]) state.jobs = { ...state.jobs, [event.job_id]: { ...state.jobs[event.job_id], ...given({ status: event.status, report: event.report }) } };
			if (ENDED.has(event.status)) delete session.outputs[event.job_id];
			break;
		default:
	}
}

export function changeAgent(state, id, change) {
	const agent = state.agents?.[id];
	if (agent) state.agents = { ...state.agents, [id]: { ...agent, ...change(agent) } };
}

export const given = (some) => Object.fromEntries(Object.entries(some).filter(([, value]) => value !== null && value !== undefined));
