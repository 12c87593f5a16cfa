// A diff for people: unified or side by side, with line numbers and changed words marked.

import { html, useLayoutEffect, useMemo, useRef, useState } from "./vendor/htm-preact.js";
import { Code, languageOf } from "./code.js";
import { Copy } from "./copy.js";
import { t, visible } from "./words.js";

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const WORD = /[^\W\u2e80-\uffff]+|\s+|[^]/gu;
const MOST_WORDS = 160;
const SHOWN_ROWS = 400;
const ROOM_FOR_TWO = 820;

export const looksLikeDiff = (text) => /^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@/m.test(text);

/** Splits a diff into files with rows: {kind: hunk | same | pair | other, old, new, left, right}. */
export function readDiff(text) {
	const files = [];
	let file = null;
	let [oldAt, newAt, oldLeft, newLeft] = [0, 0, 0, 0];
	let removed = [];
	let added = [];
	const flush = () => {
		for (let i = 0; i < Math.max(removed.length, added.length); i += 1) file.rows.push({ kind: "pair", old: removed[i], new: added[i] });
		removed = [];
		added = [];
	};
	const begin = (name) => {
		if (file) flush();
		file = { name, rows: [], added: 0, removed: 0 };
		files.push(file);
	};
	for (const line of text.split("\n")) {
		const hunk = HUNK.exec(line);
		if (line.startsWith("+") && newLeft > 0) {
			added.push([newAt++, line.slice(1)]);
			newLeft -= 1;
			file.added += 1;
		} else if (line.startsWith("-") && oldLeft > 0) {
			if (added.length) flush();
			removed.push([oldAt++, line.slice(1)]);
			oldLeft -= 1;
			file.removed += 1;
		} else if (hunk) {
			if (!file) begin("");
			flush();
			[oldAt, oldLeft, newAt, newLeft] = [+hunk[1], +(hunk[2] ?? 1), +hunk[3], +(hunk[4] ?? 1)];
			file.rows.push({ kind: "hunk", text: line });
		} else if ((line.startsWith(" ") || line === "") && oldLeft > 0 && newLeft > 0) {
			flush();
			file.rows.push({ kind: "same", old: [oldAt++, line.slice(1)], new: [newAt++, line.slice(1)] });
			oldLeft -= 1;
			newLeft -= 1;
		} else if (line.startsWith("--- ")) {
			begin("");
			file.before = line.slice(4);
		} else if (line.startsWith("+++ ")) {
			if (!file) begin("");
			const named = line.slice(4).replace(/^b\//, "");
			file.name = named === "/dev/null" ? file.before.replace(/^a\//, "") : named;
		} else if (line.trim()) {
			if (!file) begin("");
			flush();
			file.rows.push({ kind: "other", text: line });
		}
	}
	if (file) flush();
	return files.filter((one) => one.rows.length || one.name);
}

/** Finds the middle in which two similar lines differ: [begin, end of old, end of new]. */
function middle(before, after) {
	const old = before.match(WORD) ?? [];
	const now = after.match(WORD) ?? [];
	if (Math.max(old.length, now.length) > MOST_WORDS) return null;
	let begin = 0;
	while (begin < old.length && begin < now.length && old[begin] === now[begin]) begin += 1;
	let end = 0;
	while (end < old.length - begin && end < now.length - begin && old.at(-1 - end) === now.at(-1 - end)) end += 1;
	const same = old.slice(0, begin).join("").trim().length + (end ? old.slice(-end).join("").trim().length : 0);
	if (same * 2.5 < Math.max(before.trim().length, after.trim().length)) return null;
	const length = (words) => words.join("").length;
	return [length(old.slice(0, begin)), length(old.slice(0, old.length - end)), length(now.slice(0, now.length - end))];
}

const Text = ({ text, language, from, to }) =>
	from === undefined
		? html`<${Code} text=${visible(text)} language=${language} />`
		: html`<${Code} text=${visible(text.slice(0, from))} language=${language} /><mark>${visible(text.slice(from, to))}</mark
				><${Code} text=${visible(text.slice(to))} language=${language} />`;

function marks(row) {
	if (row.kind !== "pair" || !row.old || !row.new) return [{}, {}];
	const found = middle(row.old[1], row.new[1]);
	return found ? [{ from: found[0], to: found[1] }, { from: found[0], to: found[2] }] : [{}, {}];
}

const Line = ({ sign, numbers, side, kind, language, mark }) => html`<tr class=${`d-${kind}`}>
	${numbers.map((number) => html`<td class="no" aria-hidden="true">${number}</td>`)}
	<td class="sg">${sign}</td>
	<td class="tx"><${Text} text=${side[1]} language=${language} ...${mark} /></td>
</tr>`;

function unified(rows, language) {
	const out = [];
	let [minus, plus] = [[], []];
	const flush = () => {
		out.push(...minus, ...plus);
		[minus, plus] = [[], []];
	};
	for (const row of rows) {
		if (row.kind === "pair") {
			const [left, right] = marks(row);
			if (row.old) minus.push(html`<${Line} sign="−" kind="del" numbers=${[row.old[0], ""]} side=${row.old} language=${language} mark=${left} />`);
			if (row.new) plus.push(html`<${Line} sign="+" kind="add" numbers=${["", row.new[0]]} side=${row.new} language=${language} mark=${right} />`);
		} else {
			flush();
			if (row.kind === "same") out.push(html`<${Line} sign=" " kind="same" numbers=${[row.old[0], row.new[0]]} side=${row.new} language=${language} />`);
			else out.push(html`<tr class=${`d-${row.kind}`}><td class="no" /><td class="no" /><td class="sg" /><td class="tx">${visible(row.text)}</td></tr>`);
		}
	}
	flush();
	return out;
}

function beside(rows, language) {
	const half = (side, sign, kind, mark) =>
		side
			? html`<td class="no" aria-hidden="true">${side[0]}</td><td class=${`tx h-${kind}`}><i class="sg">${sign}</i
					><${Text} text=${side[1]} language=${language} ...${mark} /></td>`
			: html`<td class="no" /><td class="tx h-none" />`;
	return rows.map((row) => {
		if (row.kind === "hunk" || row.kind === "other") return html`<tr class=${`d-${row.kind}`}><td class="no" /><td class="tx" colspan="3">${visible(row.text)}</td></tr>`;
		const [left, right] = marks(row);
		const same = row.kind === "same";
		return html`<tr>${half(row.old, same ? " " : "−", same ? "same" : "del", left)}${half(row.new, same ? " " : "+", same ? "same" : "add", right)}</tr>`;
	});
}

/** Shows one file; with `beside` side by side, unless everything is new or gone. */
function FileDiff({ file, split: wanted }) {
	const [all, setAll] = useState(false);
	const split = wanted && file.added > 0 && file.removed > 0;
	const language = languageOf(file.name);
	const rows = all ? file.rows : file.rows.slice(0, SHOWN_ROWS);
	return html`<div class="file">
		<div class="file-name"><b>${visible(file.name)}</b>${file.rows.length ? html` <span class="plus">+${file.added}</span> <span class="minus">−${file.removed}</span>` : null}</div>
		<div class="wide" tabindex="0" role="group" aria-label=${t("page.diff_of", { file: file.name })}>
			<table class=${split ? "diff split" : "diff"}>${split ? html`<colgroup><col class="no" /><col /><col class="no" /><col /></colgroup>` : null}
				<tbody>${split ? beside(rows, language) : unified(rows, language)}</tbody></table>
		</div>
		${!all && file.rows.length > SHOWN_ROWS
			? html`<button class="link" data-rest onClick=${() => setAll(true)}>${t("page.more_lines", { lines: file.rows.length - SHOWN_ROWS })}</button>`
			: null}
	</div>`;
}

/** Shows the whole diff: side by side if there is room, unless the person chose otherwise. */
export function Diff({ text }) {
	const files = useMemo(() => readDiff(text), [text]);
	const box = useRef(null);
	const [wish, setWish] = useState(localStorage.getItem("duckflow-diff") ?? "");
	const [room, setRoom] = useState(false);
	useLayoutEffect(() => {
		const watch = new ResizeObserver(([entry]) => setRoom(entry.contentRect.width >= ROOM_FOR_TWO));
		watch.observe(box.current);
		return () => watch.disconnect();
	}, []);
	const split = wish ? wish === "split" : room;
	const choose = (how) => {
		localStorage.setItem("duckflow-diff", how);
		setWish(how);
	};
	const button = (how, on) => html`<button aria-pressed=${String(on)} onClick=${() => choose(how)}>${t(`page.diff_${how}`)}</button>`;
	return html`<div class="diffs" ref=${box}>
		<div class="switch" role="group" aria-label=${t("page.diff_how")}>${button("unified", !split)}${button("split", split)}<${Copy} read=${() => text} label=${t("page.copy_diff")} /></div>
		${files.map((file) => html`<${FileDiff} file=${file} split=${split} />`)}
	</div>`;
}

export function LaterDiff({ read }) {
	const [diff, setDiff] = useState(null);
	const open = (event) => event.target.open && diff === null && read().then((found) => setDiff(found.diff), (error) => setDiff(error.message));
	return html`<details onToggle=${open}><summary>${t("page.diff")}</summary>
		${diff === null ? null : looksLikeDiff(diff) ? html`<${Diff} text=${diff} />` : html`<p class="what">${visible(diff) || t("page.no_diff")}</p>`}</details>`;
}
