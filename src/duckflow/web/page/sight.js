// Nothing is answered that is not on screen: one rule for every place where a question is drawn, and every way to answer.

import { useEffect } from "./vendor/htm-preact.js";
import { t } from "./words.js";

const READING_MS = 300;
const LOOK_MS = 50;
const STEP = 12;
const BEGINNING = 60;
const LEAST_SEEN = 36;

/** For each drawn question: since when it can be answered (0: it cannot), and whether its beginning was read. */
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

function canAnswer(card, part) {
	const button = card.querySelector(".choices button, .words button")?.getBoundingClientRect();
	if (!button?.width || !part.offsetHeight) return false;
	const answers = isAt(card.querySelector("footer"), button.left + button.width / 2, button.top + button.height / 2);
	return answers && shownOf(part) >= Math.min(LEAST_SEEN, part.offsetHeight - STEP);
}

function look(id) {
	const card = cardOf(id);
	const state = seen.get(id) ?? { since: 0, begun: 0, read: false };
	const now = performance.now();
	const part = card && !document.hidden && subjectIn(card);
	state.begun = part && begins(card) ? state.begun || now : 0;
	state.since = part && canAnswer(card, part) ? state.since || now : 0;
	state.read ||= state.begun > 0 && now - state.begun >= READING_MS;
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

/** Returns since when the question is on screen, if that was long enough to read it; else 0. */
export function seenSince(id) {
	const { since, read } = look(id);
	return read && performance.now() - since >= READING_MS ? since : 0;
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

/** Says whether the question is on screen. If not, scrolls to it and tells the person. */
export function inSight(id, session, tell) {
	if (seenSince(id)) return true;
	if (!look(id).since) bring(id, session);
	tell(t("question.unseen"), "warn");
	return false;
}
