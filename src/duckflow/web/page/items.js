// What stands in the conversation, made of events; the same things that the terminal shows.

import { t } from "./words.js";

const DUCK_CALL = "duck_call";
const SHOWN_PLANS = new Set(["draft"]);
const WELL = new Set(["done", "pending_user", "deferred", "exit"]);

/** A list of items and where they are; what belongs together by its id is one item. */
export class Items {
	constructor() {
		this.list = [];
		this.known = new Map();
		this.why = "";
	}

	put(item) {
		item.v = 0;
		item.k = serial += 1;
		this.list.push(item);
		if (item.id) this.known.set(item.id, item);
		return item;
	}

	change(id, update) {
		const item = this.known.get(id);
		if (item) Object.assign(item, update, { v: item.v + 1 });
		return item;
	}

	/** Older ones go before these; one that was begun there and ended here is one. */
	prepend(older) {
		const later = [];
		for (const item of this.list) {
			const begun = item.id && older.known.get(item.id);
			if (begun) {
				Object.assign(item, { ...begun, ...given(item) }, { v: item.v + 1 });
				older.list[older.list.indexOf(begun)] = item;
			} else later.push(item);
		}
		this.list = [...older.list, ...later];
		this.known = new Map(this.list.filter((item) => item.id).map((item) => [item.id, item]));
	}

	/** Let the oldest go; they can be had again. */
	trim(most) {
		const gone = this.list.splice(0, Math.max(0, this.list.length - most));
		for (const item of gone) if (item.id) this.known.delete(item.id);
		return gone.length > 0;
	}

	hear({ number, kind, event, html, said, text }) {
		const at = { n: number, at: event.at };
		switch (kind) {
			case "turn_began":
				this.put({ kind: "turn", turn: event.turn, ...at });
				break;
			case "message_added":
				this.message(event, at);
				break;
			case "decision_made":
				this.why = event.decision.rationale;
				this.put({ kind: "why", decision: event.decision, thoughts: "", ...at });
				break;
			case "action_started":
				if (event.effect === "talk" || !event.doing) break;
				this.put({ kind: "action", id: event.action.action_id, action: event.action, doing: event.doing, job: event.job, ...at });
				break;
			case "action_finished":
				this.finished(event, html, said, at);
				break;
			case "question_asked":
				if (event.question.on_record) this.put({ kind: "asked", id: event.question.question_id, question: event.question, ...at });
				break;
			case "question_closed":
				if (event.on_record && !this.change(event.question_id, { answer: event.answer, answered: event.at }))
					this.put({ kind: "asked", id: event.question_id, answer: event.answer, answered: event.at, ...at });
				break;
			case "plan_changed":
				if (event.active && SHOWN_PLANS.has(event.plan.status)) this.put({ kind: "plan", plan: event.plan, ...at });
				break;
			case "job_ended":
				this.put({ kind: "report", status: event.status, report: event.report, job: event.job_id, text, ...at });
				break;
			case "turn_ended":
				if (event.why) this.put({ kind: WELL.has(event.outcome) ? "note" : "warn", text: event.why, ...at });
				break;
			default:
				this.line(kind, event, text, at);
		}
	}

	message({ message, file }, at) {
		const { role, text, meanwhile, pictures, job } = message;
		if (role === "user" && !job) this.put({ kind: "user", text, meanwhile, file, ...at });
		if (pictures?.length) this.put({ kind: "pictures", pictures, ...at });
	}

	finished({ result, job }, html, said, at) {
		if (said) {
			if (result.operation === DUCK_CALL) this.put({ kind: "duck", html, ...at });
			else this.put({ kind: "said", id: result.action_id, html, ...at });
			return;
		}
		if (result.effect === "talk" && result.ok) return;
		if (!this.change(result.action_id, { result }))
			this.put({ kind: "action", id: result.action_id, result, job, ...at });
	}

	/** One line in passing. */
	line(kind, event, text, at) {
		const words = {
			intervened: () => t(`pacemaker.told.${event.how}`, { found: (event.what ?? []).join(" "), severity: t(`severity.${event.severity}`) }),
			reviewed: () =>
				event.review.by === "model"
					? t("review.line", { rating: t(`review.rating.${event.review.rating}`), verdict: t(`review.verdict.${event.review.verdict}`) })
					: "",
			model_chosen: () => `${event.model}: ${event.why}`,
			reply_rejected: () => t("reply.rejected", { reason: event.reason }),
			context_pruned: () => t("page.pruned"),
			turn_undone: () => t(event.back ? "page.undone" : "page.redone", { turn: event.turn }),
			permission_given: () => t("page.allowed", { rule: event.rule }),
			noticed: () => event.what,
		}[kind];
		const told = words && (text || words());
		if (told) this.put({ kind: "note", icon: kind === "context_pruned" ? "prune" : "", text: told, ...at });
	}
}

let serial = 0;
const given = (item) => Object.fromEntries(Object.entries(item).filter(([, value]) => value !== undefined));
