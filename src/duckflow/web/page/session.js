// One session as the page knows it: items and facts from the server.

import { Items } from "./items.js";
import { Stream, get, post } from "./requests.js";

const OPENED_WITH = 400;
const OLDER = 600;
const MOST_ITEMS = 1500;
const KEPT_ITEMS = 900;
const DRAW_MS = 40;
const [SOUGHT, MOST_SEEKS] = [2000, 50];

export class Session {
	constructor(id, changed) {
		this.id = id;
		this.path = `api/sessions/${encodeURIComponent(id)}`;
		this.changed = changed;
		this.items = new Items();
		this.outputs = {};
		this.panels = {};
		this.panel = "";
		this.state = {};
		this.questions = [];
		this.first = 0;
		this.last = 0;
		this.link = "opening";
		this.follows = true;
		this.offered = "";
		this.aimed = "";
	}

	async open() {
		const { number, ...facts } = await get(this.path);
		this.know(facts);
		this.last = number;
		this.first = number + 1;
		await this.older(OPENED_WITH);
		const address = (after) => `${this.path}/events?after=${after}&panel=${this.panel}`;
		this.stream = new Stream(address, this.last, (told) => this.hear(told), (how, problem) => this.linked(how, problem));
		this.stream.start();
	}

	close() {
		this.stream?.close();
		clearTimeout(this.drawing);
		this.changed = () => {};
	}

	/** Chooses the panel beside the conversation; its content comes over the stream, too. */
	show(panel) {
		if (panel === this.panel) return;
		this.panel = panel;
		if (panel && this.stream && !this.stream.closed) this.stream.open();
	}

	know({ state, ...facts }) {
		Object.assign(this, facts);
		if (!this.busy) this.items.leave();
		if (state) this.state = { ...this.state, ...state };
		this.known = true;
	}

	linked(how, problem) {
		this.link = how;
		this.problem = problem;
		if (how !== "open") this.items.live.clear();
		this.draw();
	}

	async older(most = OLDER) {
		if (this.first <= 1 || this.fetching) return false;
		this.fetching = true;
		try {
			const told = await get(`${this.path}/record?before=${this.first}&most=${most}`);
			const older = new Items();
			for (const { items } of told) for (const item of items) older.take(item);
			this.items.prepend(older);
			this.first = told[0]?.number ?? 1;
			return told.length > 0;
		} finally {
			this.fetching = false;
			this.draw();
		}
	}

	hear(told) {
		for (const { number, items, facts, panel } of told) {
			if (number) this.last = number;
			if (facts) this.know(facts);
			if (panel) this.panels = { ...this.panels, [panel.name]: panel };
			for (const item of items) this.take(item);
		}
		if (this.follows && this.items.list.length > MOST_ITEMS) {
			this.items.trim(KEPT_ITEMS);
			this.first = this.items.list[0].number || this.last;
		}
		this.draw();
	}

	/** Reads back to a moment, and shows what was said then. */
	async seek(at) {
		this.follows = false;
		for (let tries = 0; tries < MOST_SEEKS && this.first > 1 && !(this.items.list[0]?.at <= at); tries += 1) await this.older(SOUGHT);
		const away = (item) => Math.abs(item.at - at);
		const said = this.items.list.filter((item) => item.at && (item.kind === "text" || item.kind === "action"));
		this.sought = said.reduce((best, item) => (away(item) < away(best) ? item : best), said[0])?.k;
		this.draw();
	}

	take(item) {
		if (item.kind === "offered") this.offered = item.text;
		// The last output of a job stays visible.
		else if (item.kind === "output") this.outputs[item.job] = item.over && !item.job ? "" : item.tail;
		else this.items.take(item);
	}

	draw() {
		if (!this.drawing) {
			this.drawing = setTimeout(() => {
				this.drawing = 0;
				this.changed();
			}, DRAW_MS);
		}
	}

	get plan() {
		return this.state.plans?.[this.state.active_plan];
	}

	/** Counts the answers that the person owes: to questions, to a plan's draft, to what the model asked. */
	get waitsFor() {
		const idle = this.writable && !this.in_turn;
		const draft = idle && this.plan?.status === "draft";
		return this.questions.length + (draft || (idle && this.state.asked) ? 1 : 0);
	}

	/** Returns the question that words and number keys answer: the only one, or the chosen one. */
	get target() {
		if (this.questions.length === 1) return this.questions[0];
		return this.questions.find((question) => question.question_id === this.aimed);
	}

	get secret() {
		return this.questions.some((question) => question.secret);
	}

	aim(question) {
		if (this.aimed === question) return;
		this.aimed = question;
		this.draw();
	}

	say = (text, more = {}) => post(`${this.path}/say`, { text, ...more });
	answer = (question_id, more) => post(`${this.path}/answer`, { question_id, ...more });
	interrupt = () => post(`${this.path}/interrupt`);
	control = (wish, job) => post(`${this.path}/control`, { wish, job });
	chooseMode = (mode) => post(`${this.path}/mode`, { mode });
	undo = (again) => post(`${this.path}/undo`, { again });
	approve = (plan) => post(`${this.path}/plan`, { plan });
	read = (what) => get(`${this.path}/${what}`);
}
