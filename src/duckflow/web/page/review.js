// Reviewing a turn's changes: hunk by hunk, with comments on lines that are sent as one message.

import { html, useEffect, useState } from "./vendor/htm-preact.js";
import { Code, languageOf } from "./code.js";
import { Icon } from "./icons.js";
import { post } from "./requests.js";
import { t, visible } from "./words.js";

const KINDS = { "+": "add", "-": "del", " ": "same" };
const SHOWN_LINES = 400;

const grouped = (hunks) => {
	const files = new Map();
	for (const hunk of hunks) files.set(hunk.path, [...(files.get(hunk.path) ?? []), hunk]);
	return [...files];
};

/** The changes that still stand; they are read again after something was taken back. */
export function Review({ session, turn, tell }) {
	const [hunks, setHunks] = useState(null);
	const [problem, setProblem] = useState("");
	const taken = (session.state.taken_back ?? []).filter((hunk) => hunk.turn === turn);
	const read = () => session.read(`hunks?turn=${turn}`).then((found) => (setHunks(found), setProblem("")), (error) => setProblem(error.message));
	useEffect(() => void read(), [turn, taken.length]);
	const act = async (what, more) => {
		try {
			const { told } = await post(`${session.path}/review`, { what, turn, ...more });
			if (told) tell(told);
			if (what === "take_back") await read();
			return true;
		} catch (error) {
			tell(error.message, "warn");
			return false;
		}
	};
	if (problem) return html`<p class="problem" role="alert">${visible(problem)}</p>`;
	if (!hunks) return html`<p class="nothing">…</p>`;
	return html`<div class="review">
		${hunks.length ? null : html`<p class="nothing">${t("page.nothing_stands")}</p>`}
		${grouped(hunks).map(([path, own]) => html`<${File} key=${path} path=${path} hunks=${own} session=${session} act=${act} />`)}
		${taken.map(
			(hunk) => html`<p class="taken">
				<code>${visible(hunk.path)}</code> <span class="meta">${t("page.hunk_at", { line: hunk.new_start })} · ${t("page.taken_back")}</span>
				<button onClick=${() => act("put_back", { hunk: hunk.hunk_id })}>${t("page.put_back")}</button>
			</p>`,
		)}
	</div>`;
}

function File({ path, hunks, session, act }) {
	const read = hunks.filter((hunk) => session.state.reviewed?.includes(hunk.hunk_id)).length;
	return html`<section class="file" aria-label=${t("page.diff_of", { file: path })}>
		<div class="file-name row-of">
			<b>${visible(path)}</b>
			<span class="meta">${t("page.hunks_read", { read, count: hunks.length })}</span>
			<button class="link" onClick=${() => act("take_back", { path })}>${t("page.take_file_back")}</button>
		</div>
		${hunks.map((hunk) => html`<${Hunk} key=${hunk.hunk_id} hunk=${hunk} session=${session} act=${act} />`)}
	</section>`;
}

function Hunk({ hunk, session, act }) {
	const [at, setAt] = useState(null);
	const [all, setAll] = useState(false);
	const reviewed = session.state.reviewed?.includes(hunk.hunk_id) ?? false;
	const language = languageOf(hunk.path);
	const comments = (session.state.comments ?? []).filter((comment) => comment.turn === hunk.turn && comment.path === hunk.path);
	const lines = all ? hunk.lines : hunk.lines.slice(0, SHOWN_LINES);
	const where = (line) => (line.sign === "-" ? { side: "old", line: line.old } : { side: "new", line: line.new });
	const keep = async (place, text) => {
		if (await act("comment", { path: hunk.path, ...place, text })) setAt(null);
	};
	// There is one stop for the Tab key; arrows go from line to line.
	const move = (event) => {
		const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
		if (!step || !event.target.matches(".add-comment")) return;
		event.preventDefault();
		const buttons = [...event.currentTarget.querySelectorAll(".add-comment")];
		buttons[buttons.indexOf(event.target) + step]?.focus();
	};
	return html`<div class=${`hunk${reviewed ? " read" : ""}`}>
		<div class="hunk-head row-of">
			<code>${visible(hunk.header)}</code>
			<label>
				<input type="checkbox" checked=${reviewed} onChange=${(event) => act("mark", { hunk: hunk.hunk_id, reviewed: event.target.checked })} />
				${t("page.reviewed")}
			</label>
			<button class="link" onClick=${() => act("take_back", { path: hunk.path, hunk: hunk.hunk_id })}>${t("page.take_back")}</button>
		</div>
		${reviewed
			? null
			: html`<table class="diff commented">
					<tbody onKeyDown=${move}>
						${lines.map((line, number) => {
							const place = where(line);
							const said = comments.filter((comment) => comment.line === place.line && comment.side === place.side);
							const label = t("page.comment_on", { line: place.line });
							return html`<tr class=${`d-${KINDS[line.sign]}`}>
									<td class="no">
										${line.new || line.old}
										<button class="add-comment" aria-label=${label} title=${label} tabindex=${number ? -1 : 0} onClick=${() => setAt(number)}>+</button>
									</td>
									<td class="sg">${line.sign === "-" ? "−" : line.sign}</td>
									<td class="tx"><${Code} text=${visible(line.text)} language=${language} /></td>
								</tr>
								${said.map((comment) => html`<${Comment} key=${comment.comment_id} comment=${comment} act=${act} />`)}
								${at === number ? html`<${Draft} place=${place} keep=${keep} leave=${() => setAt(null)} />` : null}`;
						})}
					</tbody>
				</table>
				${hunk.lines.length > lines.length
					? html`<button class="link" onClick=${() => setAll(true)}>${t("page.more_lines", { lines: hunk.lines.length - lines.length })}</button>`
					: null}`}
	</div>`;
}

const Comment = ({ comment, act }) => html`<tr class="comment">
	<td colspan="3">
		<p>${visible(comment.text)}</p>
		<button class="tool" aria-label=${t("page.comment_drop")} title=${t("page.comment_drop")} onClick=${() => act("drop", { comment: comment.comment_id })}>
			<${Icon} name="cross" />
		</button>
	</td>
</tr>`;

function Draft({ place, keep, leave }) {
	const [text, setText] = useState("");
	const save = (event) => {
		event.preventDefault();
		if (text.trim()) keep(place, text);
	};
	const key = (event) => {
		if (event.isComposing || event.keyCode === 229) return;
		if (event.key === "Enter" && !event.shiftKey) save(event);
		if (event.key === "Escape") leave();
	};
	const label = t("page.comment_on", { line: place.line });
	return html`<tr class="comment">
		<td colspan="3">
			<form class="words" onSubmit=${save}>
				<textarea ref=${focusOnce} rows="2" aria-label=${label} placeholder=${label} value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${key} />
				<button class="primary" disabled=${!text.trim()}>${t("page.comment_keep")}</button>
				<button type="button" onClick=${leave}>${t("page.cancel")}</button>
			</form>
		</td>
	</tr>`;
}

const focusOnce = (field) => {
	if (field && !field.dataset.seen) {
		field.dataset.seen = "yes";
		field.focus();
	}
};

/** All comments that wait, from every turn: they are sent as one message. */
export function Comments({ session, tell }) {
	const [text, setText] = useState("");
	const comments = session.state.comments ?? [];
	if (!comments.length || !session.writable) return null;
	const send = async (event) => {
		event.preventDefault();
		try {
			await post(`${session.path}/review`, { what: "send", text });
			setText("");
		} catch (error) {
			tell(error.message, "warn");
		}
	};
	const drop = (comment) => post(`${session.path}/review`, { what: "drop", comment }).catch((error) => tell(error.message, "warn"));
	return html`<form class="send-comments words" onSubmit=${send}>
		<details>
			<summary>${t("page.comments_wait", { count: comments.length })}</summary>
			${comments.map(
				(one) => html`<p class="row-of"><code>${visible(`${one.path}:${one.line}`)}</code> ${visible(one.text)} <button type="button" class="link" onClick=${() => drop(one.comment_id)}>${t("page.comment_drop")}</button></p>`,
			)}
		</details>
		<input value=${text} placeholder=${t("page.comments_more")} autocomplete="off" onInput=${(event) => setText(event.target.value)} />
		<button class="primary">${t("page.comments_send")}</button>
	</form>`;
}

const SHOWN = ["red", "noticing"];
const PROOFS = ["red", "noticing", "guarding", "hollow", "untold", "unreached"];

/** A change that nobody asked for. One click takes it back, and nothing else. */
function Unasked({ change, session, tell }) {
	const { turn, path, hunk_id: hunk } = change;
	const taken = session.state.taken_back?.some((one) => one.hunk_id === hunk) || session.items.takenBack(turn).has(path);
	const take = () => post(`${session.path}/review`, { what: "take_back", turn, path, hunk }).then(({ told }) => tell(told), (error) => tell(error.message, "warn"));
	return html`<p><code>${visible(`${path}:${change.line}`)}</code> ${
		taken ? html`<span class="meta">${t("page.taken_back")}</span>` : session.writable ? html`<button class="link" onClick=${take}>${t("page.take_back")}</button>` : null
	}</p>`;
}

/** The proof of a turn: a line, and each test when it is unfolded. */
export function Proof({ proof, line, session, tell }) {
	const told = PROOFS.filter((kind) => proof[kind]?.length);
	// Only tests that were seen to fail without the change count as proof.
	const how = proof.hollow?.length ? "warn" : SHOWN.some((kind) => proof[kind]?.length) ? "check" : "note";
	return html`<details class="proof">
		<summary class=${how}>
			<${Icon} name=${how} />${visible(line)}
		</summary>
		<dl class="five">
			${told.map((kind) => html`<dt>${t(`page.proof.${kind}`)}</dt><dd class="mono">${visible(proof[kind].join("\n"))}</dd>`)}
			${proof.unasked?.length
				? html`<dt>${t("page.proof.unasked")}</dt><dd>${proof.unasked.map((change) => html`<${Unasked} key=${change.hunk_id} change=${change} session=${session} tell=${tell} />`)}</dd>`
				: null}
			${proof.why && !line.includes(proof.why) ? html`<dt>${t("page.proof.why")}</dt><dd>${visible(proof.why)}</dd>` : null}
		</dl>
	</details>`;
}
