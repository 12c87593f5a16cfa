// The items of the conversation. The server says what each item is; here they only get their places.

let serial = 0;
/** Returns the fields of an item that are known. */
const known = (item) => Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null));

export class Items {
	constructor() {
		this.list = [];
		this.byId = new Map();
		/** Texts that are being written. They get a place when they are complete. */
		this.live = new Map();
	}

	take(item) {
		const before = this.byId.get(item.id);
		if (item.state === "streaming") this.live.set(item.id, item);
		else {
			this.live.delete(item.id);
			if (before) Object.assign(before, known(item), { number: before.number, at: before.at, v: before.v + 1 });
			else if (item.kind !== "gone") this.put(item);
		}
		if (item.kind === "turn" && item.outcome) this.leave();
	}

	/** Ends what a turn has left unfinished: a server that came later does not know of it. */
	leave() {
		for (const item of this.list) if (item.state === "running" && !item.job) Object.assign(item, { state: "left", v: item.v + 1 });
	}

	put(item) {
		serial += 1;
		Object.assign(item, { v: 0, k: serial });
		this.list.push(item);
		this.byId.set(item.id, item);
	}

	get latestPlan() {
		return this.list.findLast((item) => item.kind === "plan");
	}

	/** Returns the files of a turn that were taken back completely and not restored. */
	takenBack(turn) {
		const taken = new Set();
		const changes = this.list.filter((item) => item.about === "undone" && item.turn === turn);
		for (const { subject, paths } of changes) for (const path of paths) taken[subject === "back" ? "add" : "delete"](path);
		return taken;
	}

	/** Puts older items before these. An item that began there and ended here becomes one. */
	prepend(older) {
		const later = this.list.filter((item) => !older.byId.has(item.id));
		const ended = this.list.filter((item) => older.byId.has(item.id));
		for (const item of ended) Object.assign(older.byId.get(item.id), known({ ...item, number: null, at: null }), { v: item.v + 1 });
		this.list = [...older.list, ...later];
		this.byId = new Map(this.list.map((item) => [item.id, item]));
	}

	/** Drops the oldest items; they can be read again. */
	trim(most) {
		for (const item of this.list.splice(0, Math.max(0, this.list.length - most))) this.byId.delete(item.id);
	}
}
