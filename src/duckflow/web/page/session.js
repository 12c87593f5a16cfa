// One session as the page knows it: the snapshot, kept true by events.

import { Items } from "./items.js";
import { Stream, get, post } from "./requests.js";
import { applyWork, changeAgent, given } from "./work.js";

const OPENED_WITH = 400;
const OLDER = 600;
const MOST_ITEMS = 1500;
const KEPT_ITEMS = 900;
const TAIL = 8000;
const DRAW_MS = 40;
const LOOK_MS = 700;
const MOVING = new Set(["decision_made", "plan_changed", "job_started", "job_changed", "job_ended", "agent_started", "agent_ended", "turn_ended", "language_chosen"]);
const PASSING = new Set(["now_changed", "question_asked", "question_closed", "turn_began", "turn_ended", "mode_chosen"]);

export class Session {
	constructor(id, changed) {
		this.id = id;
		this.path = `api/sessions/${encodeURIComponent(id)}`;
		this.changed = changed;
		this.items = new Items();
		this.state = {};
		this.questions = [];
		this.now = { in_turn: false, busy: false, waiting: [] };
		this.first = 0;
		this.last = 0;
		this.stateAt = 0;
		this.moved = 0;
		this.reply = blank();
		this.outputs = {};
		this.doing = "";
		this.link = "opening";
		this.follows = true;
		this.commandsRunning = new Map();
		this.offered = "";
	}

	async open() {
		const snapshot = await get(this.path);
		this.take(snapshot);
		this.last = snapshot.number;
		this.first = snapshot.number + 1;
		await this.older(OPENED_WITH);
		this.stream = new Stream(`${this.path}/events`, this.last, (told) => this.hear(told), (how, problem) => this.linked(how, problem));
		this.stream.open();
		this.seen = () => (document.hidden ? this.rest() : this.wake());
		document.addEventListener("visibilitychange", this.seen);
	}

	close() {
		this.stream?.close();
		clearTimeout(this.drawing);
		clearTimeout(this.soon);
		clearInterval(this.looking);
		document.removeEventListener("visibilitychange", this.seen);
		this.changed = () => {};
	}

	/** A browser has only few connections for all its pages: one that nobody sees asks now and then. */
	rest() {
		clearInterval(this.looking);
		this.looking = setInterval(() => this.look().catch(() => {}), 10000);
		this.resting = setTimeout(() => this.stream.close(), 30000);
	}

	wake() {
		clearInterval(this.looking);
		clearTimeout(this.resting);
		if (this.stream.closed && this.link !== "refused") this.stream.open();
	}

	/** What the page does not work out itself (goal, states of plans) is read again when it may have moved. */
	lookSoon() {
		clearTimeout(this.soon);
		this.soon = setTimeout(() => this.look().catch(() => {}), LOOK_MS);
	}

	async look() {
		const { moved } = this;
		const snapshot = await get(this.path);
		// What was heard meanwhile is newer than the answer.
		if (moved === this.moved) this.take(snapshot);
		else this.lookSoon();
		this.draw();
	}

	take(snapshot) {
		const { state, questions, mode, model, commands, writable, in_turn, busy, waiting } = snapshot;
		Object.assign(this, { mode, model, commands, writable, snapshot });
		// What is on record is kept by the events; an older snapshot must not take it back.
		if (snapshot.number >= this.last) {
			this.state = { ...state };
			this.stateAt = snapshot.number;
		}
		this.questions = questions ?? [];
		this.now = { in_turn: in_turn ?? false, busy: busy ?? false, waiting: waiting ?? [] };
	}

	linked(how, problem) {
		this.link = how === "back" ? "open" : how;
		this.problem = problem;
		if (how === "back" || how === "open") this.look().catch(() => {});
		if (how === "lost") this.reply = blank();
		this.draw();
	}

	async older(most = OLDER) {
		if (this.first <= 1 || this.fetching) return false;
		this.fetching = true;
		try {
			const events = await get(`${this.path}/record?before=${this.first}&most=${most}`);
			if (!events.length) this.first = 1;
			else {
				const page = new Items();
				for (const one of events) page.hear(one);
				this.items.prepend(page);
				this.first = events[0].number;
			}
			return events.length > 0;
		} finally {
			this.fetching = false;
			this.draw();
		}
	}

	hear(told) {
		for (const one of told) {
			if (one.number) this.last = one.number;
			if (MOVING.has(one.kind)) this.lookSoon();
			if (PASSING.has(one.kind)) this.moved += 1;
			this.apply(one);
			this.items.hear(one);
			if (one.kind === "decision_made") this.items.list.at(-1).thoughts = this.reply.thoughts;
		}
		if (this.follows && this.items.list.length > MOST_ITEMS && this.items.trim(KEPT_ITEMS)) this.first = this.items.list[0].n || this.last;
		this.draw();
	}

	draw() {
		if (!this.drawing) {
			this.drawing = setTimeout(() => {
				this.drawing = 0;
				this.changed();
			}, DRAW_MS);
		}
	}

	apply({ number, kind, event, html }) {
		const { state } = this;
		switch (kind) {
			case "text_streamed":
				if (event.channel === "think") this.reply.thoughts += event.text;
				else if (event.channel === "say") {
					this.reply.text += event.text;
					this.reply.html = html ?? "";
				}
				break;
			case "loop_began":
				state.loop = event.loop;
				state.limit = event.limit;
				state.profile = event.profile;
				this.reply = blank();
				break;
			case "stream_reset":
			case "reply_rejected":
				this.reply = { text: "", html: "", thoughts: this.reply.thoughts };
				break;
			case "output_streamed":
				this.outputs[event.job] = ((this.outputs[event.job] ?? "") + event.text).slice(-TAIL);
				break;
			case "action_started":
				if (!event.job) this.doing = event.doing ?? "";
				changeAgent(state, event.job, () => ({ doing: event.doing }));
				break;
			case "action_finished":
				if (!event.job) {
					delete this.outputs[""];
					this.doing = "";
					this.reply = blank();
				}
				for (const path of event.result.changed ?? []) if (!state.files_changed?.includes(path)) state.files_changed = [...(state.files_changed ?? []), path];
				break;
			case "turn_began":
				this.now = { ...this.now, in_turn: true };
				break;
			case "turn_ended":
				this.now = { ...this.now, in_turn: false };
				this.doing = "";
				this.reply = blank();
				break;
			case "waiting":
				this.doing = event.why;
				break;
			case "now_changed":
				this.now = { ...event, waiting: event.waiting.map(([text, later]) => ({ text, later })) };
				break;
			case "question_asked":
				if (!this.questions.some((one) => one.question_id === event.question.question_id)) this.questions = [...this.questions, event.question];
				break;
			case "question_closed":
				this.questions = this.questions.filter((one) => one.question_id !== event.question_id);
				break;
			case "command_started":
				this.commandsRunning.set(event.command_id, event.line);
				break;
			case "command_finished":
				if (event.text || event.problem)
					this.items.put({ kind: "lines", line: this.commandsRunning.get(event.command_id), text: event.text, problem: event.problem, n: 0, at: event.at });
				this.commandsRunning.delete(event.command_id);
				break;
			case "line_offered":
				this.offered = event.text;
				break;
			case "session_titled":
				state.named = event.title;
				break;
			case "message_added":
				if (event.title) state.title = event.title;
				break;
			case "mode_chosen":
				this.mode = event.mode;
				break;
			case "model_chosen":
				this.model = event.model;
				break;
			case "vitals_changed":
				state.vitals = event.vitals;
				break;
			case "usage_reported":
				if (number > this.stateAt) {
					state.usage = plus(state.usage ?? {}, event.usage);
					changeAgent(state, event.job, (agent) => ({ usage: plus(agent.usage, event.usage) }));
				}
				break;
			case "five_changed":
				state.five = { ...state.five, ...given(event.delta) };
				break;
			default:
				applyWork(this, kind, event);
		}
	}

	get plan() {
		return this.state.plans?.[this.state.active_plan];
	}

	say = (text, more = {}) => post(`${this.path}/say`, { text, ...more });
	answer = (question_id, more) => post(`${this.path}/answer`, { question_id, ...more });
	interrupt = () => post(`${this.path}/interrupt`);
	control = (wish, job) => post(`${this.path}/control`, { wish, job });
	chooseMode = (mode) => post(`${this.path}/mode`, { mode });
	undo = (again) => post(`${this.path}/undo`, { again });
	approve = () => post(`${this.path}/plan`);
	read = (what) => get(`${this.path}/${what}`);
}

const blank = () => ({ text: "", html: "", thoughts: "" });

function plus(one, other) {
	const sum = { ...one };
	for (const [name, value] of Object.entries(other)) sum[name] = (sum[name] ?? 0) + value;
	return sum;
}
