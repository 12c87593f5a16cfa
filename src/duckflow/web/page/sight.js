// Nothing is answered that is not on screen: one rule for every question and every way to answer.

import { useEffect } from "./vendor/htm-preact.js";
import { t } from "./words.js";

/** What a draft of a plan is known by, as a question is by its id. */
export const DRAFT = "draft";
const READING_MS = 300;
const LOOK_MS = 50;
const STEP = 12;
const LEAST_SEEN = 48;

/** What was seen of each drawn question: `read` its beginning, `to` how far without a gap, `since` when it can be answered (0: it cannot). */
const seen = new Map();

const cardOf = (id) => document.querySelector(`[data-question="${CSS.escape(id)}"]`);

/** Returns what is at a point of the screen. Of a page enlarged by fingers only a piece is there. */
function at(x, y) {
	const { offsetLeft, offsetTop, width, height } = visualViewport;
	const isThere = x >= offsetLeft && y >= offsetTop && x < offsetLeft + width && y < offsetTop + height;
	return isThere ? document.elementFromPoint(x, y) : null;
}

/** Returns where the part begins that a question is about: the commands, else the lines of the diff, else the whole text. */
const beginningOf = (card) =>
	card.querySelector("[data-subject] :is(.command, .diff)") ?? card.querySelector("[data-subject]") ?? card.querySelector(".inside > *") ?? card.querySelector("header");

/** Measures what is on screen, `shown` in all and `begun` from the beginning on, and in three columns `to` where it was seen. */
function measure(card, state) {
	const first = beginningOf(card);
	const { left, right, top, width } = first.getBoundingClientRect();
	const height = ([...card.querySelectorAll("[data-subject]")].at(-1) ?? first).getBoundingClientRect().bottom - top;
	// Lines that are broken anew have to be read anew; what is unfolded only adds lines.
	if (!(Math.abs(width - state.width) < 2 && height > state.height - 2)) state.to = [0, 0, 0];
	Object.assign(state, { width, height, begun: 0, shown: 0 });
	const footer = card.querySelector("footer");
	const sees = (x, y) => card.contains(at(x, y)) && !footer.contains(at(x, y));
	const further = (to, y) => (to > y - STEP ? Math.max(to, y + STEP / 2) : to);
	for (let y = STEP / 2; y < height && top + y < innerHeight; y += STEP) {
		const columns = [left + STEP, left + width / 2, right - STEP].map((x) => sees(x, top + y));
		state.to = state.to.map((to, place) => (columns[place] ? further(to, y) : to));
		if (!columns[0]) continue;
		state.shown += STEP;
		state.begun = further(state.begun, y);
	}
}

function canAnswer(card) {
	const button = card.querySelector(".choices button, .words button")?.getBoundingClientRect();
	return button?.width && card.querySelector("footer").contains(at(button.left + button.width / 2, button.top + button.height / 2));
}

/** Notes since when something is so, and says whether that is long enough to read. */
function lasts(state, name, so) {
	const now = performance.now();
	state[name] = so ? state[name] || now : 0;
	return so && now - state[name] >= READING_MS;
}

function look(id) {
	const card = cardOf(id);
	const state = seen.get(id) ?? { to: [0] };
	seen.set(id, state);
	const drawn = card?.offsetHeight && !document.hidden;
	if (drawn) measure(card, state);
	const { begun, shown } = state;
	const most = Math.max(1, state.height - STEP);
	const least = Math.min(LEAST_SEEN, most);
	state.read = lasts(state, "began", drawn && begun >= least) || state.read;
	state.whole = lasts(state, "ended", Math.min(...state.to) >= most && !card?.querySelector("[data-rest]"));
	state.ready = lasts(state, "since", drawn && shown >= least && canAnswer(card));
	return state;
}

/** Watches a question for as long as it is drawn. */
export function useSight(id, about = true) {
	useEffect(() => {
		seen.set(id, { to: [0], about });
		const timer = setInterval(look, LOOK_MS, id);
		return () => {
			clearInterval(timer);
			seen.delete(id);
			// The others move up: a second click was not meant for them.
			for (const state of seen.values()) state.since = 0;
		};
	}, [id]);
}

/** Returns since when the question is on screen, if that was long enough to read it, `toEnd` all of it; else 0. */
export function seenSince(id, toEnd = true) {
	const { since, read, whole, ready } = look(id);
	return read && ready && (whole || !toEnd) ? since : 0;
}

/** Returns what a question is about, if all of it has been on screen; else nothing. */
export function wasRead(id) {
	const { read, whole, about } = look(id);
	return read && whole ? about : undefined;
}

/** Scrolls to the beginning of a question, or with `more` to what comes after the part that was seen. */
export function bring(id, session, more) {
	session.uncover?.();
	session.follows = false;
	setTimeout(() => {
		const card = cardOf(id);
		if (!card) return;
		if (more) {
			for (const rest of card.querySelectorAll("[data-rest]")) rest.click();
			const box = card.closest(".talk, .page");
			box.scrollBy(0, beginningOf(card).getBoundingClientRect().top + Math.min(...look(id).to) - box.getBoundingClientRect().top - 2 * STEP);
			return;
		}
		card.scrollIntoView({ block: "start" });
		if (!look(id).began) beginningOf(card).scrollIntoView({ block: "start" });
	}, LOOK_MS);
}

/** Says whether the question is on screen, and for a yes (`toEnd`) was read to its end. If not, scrolls and tells the person. */
export function inSight(id, session, tell, toEnd) {
	if (seenSince(id, toEnd)) return true;
	const { since, read, began, whole } = look(id);
	const more = toEnd && read && !whole;
	if (more || !since || !(read || began)) bring(id, session, more);
	tell(t(more ? "question.more" : id === DRAFT ? "plan.unseen" : "question.unseen"), "warn");
	return false;
}
