// Nothing is answered that is not on screen: one rule for every place where a question is drawn, and every way to answer.

import { useEffect } from "./vendor/htm-preact.js";
import { t } from "./words.js";

const READING_MS = 300;
const LOOK_MS = 50;
const STEP = 12;
const BEGINNING = 60;
const LEAST_SEEN = 36;

/** What was seen of each drawn question: `read` its beginning, `whole` its end, `since` when it can be answered (0: it cannot). */
const seen = new Map();

const cardOf = (id) => document.querySelector(`[data-question="${CSS.escape(id)}"]`);
const isAt = (part, x, y) => part.contains(document.elementFromPoint(x, y));

/** Returns the part that a question is about: the command, else the diff, else the whole text. */
const subjectIn = (card) => card.querySelector("[data-subject]") ?? card.querySelector(".inside > *") ?? card.querySelector("header");

/** Measures how much of a part is visible on screen, counted from its beginning or anywhere. */
function shownOf(part, fromBeginning) {
	const { left, top, bottom, width } = part.getBoundingClientRect();
	let shown = 0;
	for (let y = top + STEP / 2; y < bottom && y < innerHeight; y += STEP) {
		if (y >= 0 && isAt(part, left + Math.min(STEP, width / 2), y)) shown += STEP;
		else if (fromBeginning) break;
	}
	return Math.min(shown, bottom - top);
}

/** Says whether the first lines of that part are on screen; for a diff its own lines, not those above it. */
function begins(card) {
	const part = card.querySelector("[data-subject] :is(.command, .diff)") ?? subjectIn(card);
	return part.offsetHeight > 0 && shownOf(part, true) >= Math.min(BEGINNING, part.offsetHeight - STEP);
}

/** Says whether the last lines of it are on screen, with nothing folded away. */
function ends(card) {
	const part = [...card.querySelectorAll("[data-subject]")].at(-1) ?? subjectIn(card);
	const { left, bottom, width } = part.getBoundingClientRect();
	return !card.querySelector("[data-rest]") && isAt(part, left + Math.min(STEP, width / 2), bottom - STEP / 2);
}

function canAnswer(card, part) {
	const button = card.querySelector(".choices button, .words button")?.getBoundingClientRect();
	if (!button?.width || !part.offsetHeight) return false;
	const answers = isAt(card.querySelector("footer"), button.left + button.width / 2, button.top + button.height / 2);
	return answers && shownOf(part) >= Math.min(LEAST_SEEN, part.offsetHeight - STEP);
}

/** Notes since when something is so, and says whether that is long enough to read. */
function lasts(state, name, so) {
	const now = performance.now();
	state[name] = so ? state[name] || now : 0;
	return so && now - state[name] >= READING_MS;
}

function look(id) {
	const card = cardOf(id);
	const state = seen.get(id) ?? {};
	const part = card && !document.hidden && subjectIn(card);
	state.read = lasts(state, "begun", part && begins(card)) || state.read;
	state.whole = lasts(state, "ended", part && ends(card)) || state.whole;
	state.ready = lasts(state, "since", part && canAnswer(card, part));
	seen.set(id, state);
	return state;
}

/** Watches a question for as long as it is drawn. */
export function useSight(id) {
	useEffect(() => {
		const timer = setInterval(look, LOOK_MS, id);
		return () => {
			clearInterval(timer);
			seen.delete(id);
		};
	}, [id]);
}

/** Returns since when the question is on screen, if that was long enough to read it, `toEnd` all of it; else 0. */
export function seenSince(id, toEnd = true) {
	const { since, read, whole, ready } = look(id);
	return read && ready && (whole || !toEnd) ? since : 0;
}

/** Shows the next part of a long question. */
function turnPage(id) {
	const card = cardOf(id);
	for (const rest of card.querySelectorAll("[data-rest]")) rest.click();
	const box = card.closest(".talk, .page");
	box.scrollBy(0, box.clientHeight / 2);
}

/** Scrolls to the beginning of a question. */
export function bring(id, session) {
	session.uncover?.();
	setTimeout(() => {
		const card = cardOf(id);
		card?.scrollIntoView({ block: "start" });
		if (card && !begins(card)) subjectIn(card).scrollIntoView({ block: "start" });
	}, LOOK_MS);
}

/** Says whether the question is on screen, and for a yes (`toEnd`) was read to its end. If not, scrolls and tells the person. */
export function inSight(id, session, tell, toEnd) {
	if (seenSince(id, toEnd)) return true;
	const more = seenSince(id, false);
	if (more) turnPage(id);
	else if (!look(id).since) bring(id, session);
	tell(t(more ? "question.more" : "question.unseen"), "warn");
	return false;
}
