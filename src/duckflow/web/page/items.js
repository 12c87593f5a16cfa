// What stands in the conversation. The server says what each item is; here they only get their places.

let serial = 0;
/** What is not known does not take away what is. */
const known = (item) => Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null));

export class Items {
	constructor() {
		this.list = [];
		this.byId = new Map();
		/** Texts that are being written: they get a place when they are whole. */
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

	/** The files of a turn that were taken back whole and not put in again. */
	takenBack(turn) {
		const taken = new Set();
		const changes = this.list.filter((item) => item.about === "undone" && item.turn === turn);
		for (const { subject, paths } of changes) for (const path of paths) taken[subject === "back" ? "add" : "delete"](path);
		return taken;
	}

	/** Older ones go before these; one that was begun there and ended here is one. */
	prepend(older) {
		const later = this.list.filter((item) => !older.byId.has(item.id));
		const ended = this.list.filter((item) => older.byId.has(item.id));
		for (const item of ended) Object.assign(older.byId.get(item.id), known({ ...item, number: null, at: null }), { v: item.v + 1 });
		this.list = [...older.list, ...later];
		this.byId = new Map(this.list.map((item) => [item.id, item]));
	}

	/** Let the oldest go; they can be had again. */
	trim(most) {
		for (const item of this.list.splice(0, Math.max(0, this.list.length - most))) this.byId.delete(item.id);
	}
}
