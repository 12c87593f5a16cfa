// Requests to the page's server: JSON for what a person does, and a stream of numbered events.

import { t } from "./words.js";

export class Refused extends Error {
	constructor(status, message, key) {
		super(message);
		this.status = status;
		this.key = key;
	}
}

async function refusal(answer) {
	const data = await answer.json().catch(() => ({}));
	return new Refused(answer.status, data.error || `${answer.status} ${answer.statusText}`, data.key);
}

async function call(path, options) {
	const answer = await fetch(path, { credentials: "same-origin", ...options }).catch(() => {
		throw new Refused(0, t("page.no_answer"));
	});
	if (!answer.ok) throw await refusal(answer);
	return answer.json().catch(() => ({}));
}

export const get = (path) => call(path, {});

const underWay = new Map();

/** Asks for something to be done. What is under way already (a double click) is not done twice. */
export function post(path, values = {}) {
	const body = JSON.stringify(values);
	const key = `${path} ${body}`;
	if (!underWay.has(key)) {
		const answer = call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body });
		underWay.set(key, answer.finally(() => underWay.delete(key)));
	}
	return underWay.get(key);
}

const SILENT_MS = 40000;
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [400, 20000];
const STEADY_MS = 5000;
const MOST_HIDDEN = 3;
const MOST_TRIES = 6;

/** A stream of everything after a number, once and in order. If cut off, it reconnects and continues. */
export class Stream {
	constructor(address, after, hear, tell) {
		this.address = address;
		this.after = after;
		this.hear = hear;
		this.tell = tell;
		this.tries = 0;
		this.closed = false;
	}

	/** Opens the stream. A browser has few connections for all pages: those not seen for longest give theirs up. */
	start() {
		const later = new Set();
		const me = Math.random();
		this.others = new BroadcastChannel("duckflow-pages");
		this.others.onmessage = ({ data }) => {
			later.add(data);
			if (document.hidden && later.size >= MOST_HIDDEN) this.rest();
		};
		this.seen = () => {
			if (document.hidden) return;
			later.clear();
			this.others.postMessage(me);
			if (this.resting) this.open();
		};
		document.addEventListener("visibilitychange", this.seen);
		this.open();
		this.seen();
	}

	open() {
		clearTimeout(this.timer);
		this.closed = this.resting = false;
		this.stop?.abort();
		this.stop = new AbortController();
		const { stop } = this;
		this.read(stop).catch((problem) => stop === this.stop && this.cut(problem));
	}

	close() {
		this.rest();
		this.others.close();
		document.removeEventListener("visibilitychange", this.seen);
	}

	rest() {
		this.closed = this.resting = true;
		clearTimeout(this.timer);
		clearTimeout(this.watch);
		this.stop?.abort();
	}

	cut(problem) {
		clearTimeout(this.watch);
		if (this.closed) return;
		if (problem instanceof Refused && problem.status < 500 && problem.status !== 429) {
			this.closed = true;
			this.tell("refused", problem);
			return;
		}
		// A stream cut right after opening counts as a failed try; only one that has lasted resets the count.
		this.tries = this.since && performance.now() - this.since > STEADY_MS ? 1 : this.tries + 1;
		this.since = 0;
		clearTimeout(this.timer);
		if (this.tries > MOST_TRIES) {
			// The server is gone. The page tries again when the person looks at it or asks for it.
			this.closed = this.resting = true;
			this.tries = 0;
			this.tell("gone", problem);
			return;
		}
		this.tell("lost", problem);
		this.timer = setTimeout(() => this.open(), Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 5 ** (this.tries - 1)));
	}

	async read(stop) {
		const answer = await fetch(this.address(this.after), {
			credentials: "same-origin",
			headers: { Accept: "text/event-stream" },
			signal: stop.signal,
		});
		if (!answer.ok) throw await refusal(answer);
		this.since = performance.now();
		this.tell("open");
		const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
		let rest = "";
		for (;;) {
			clearTimeout(this.watch);
			this.watch = setTimeout(() => stop.abort(), SILENT_MS);
			const { value, done } = await reader.read();
			if (done) throw new Error("cut off");
			const blocks = (rest + value).split("\n\n");
			rest = blocks.pop();
			if (this.stop !== stop || this.closed) return;
			const told = blocks.map(readBlock).filter((one) => one && this.isNew(one));
			if (told.length) this.hear(told);
		}
	}

	isNew(told) {
		if (!told.number) return true;
		if (told.number <= this.after) return false;
		this.after = told.number;
		return true;
	}
}

/** Reads a block of the stream. One without data only says that the server is there. */
const readBlock = (block) => JSON.parse(/^data: ([^\n]*)/m.exec(block)?.[1] ?? "null");
