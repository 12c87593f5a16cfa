// Questions as cards: commands first and whole, computed lines apart from the model's words.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { Code, Sentence } from "./code.js";
import { Copy } from "./copy.js";
import { Diff } from "./diff.js";
import { Duck, Icon } from "./icons.js";
import { Notices } from "./notices.js";
import { DRAFT, inSight, useSight, wasRead } from "./sight.js";
import { t, visible } from "./words.js";

/** The choices with numbers: the others are offered at few Gates, and their numbers would leave gaps. */
const NUMBERED = 4;
const REFUSING = new Set(["no", "skip", "stop"]);
/** Says whether an answer may be a yes: words can be one. */
const accepts = ({ key, choice = key }) => !REFUSING.has(choice);

/** Returns the diff without the commands, which stand before it. */
function fileDiff({ diff, commands }) {
	const before = commands.join("\n");
	return diff.startsWith(before) ? diff.slice(before.length).replace(/^\n/, "") : diff;
}

function Gate({ gate }) {
	const diff = fileDiff(gate);
	const said = [
		...gate.intent.map((text) => ["gate.intent", text]),
		["gate.rationale", gate.rationale],
		...gate.alternatives.map((text) => ["gate.alternative", text]),
	].filter(([, text]) => text?.trim());
	return html`<div class="gate">
		${gate.commands.length
			? html`<div data-subject>
					${gate.commands.map(
						(command) => html`<div class="copied">
							<pre class="command" tabindex="0"><${Code} text=${visible(command)} language="sh" /></pre>
							<${Copy} read=${() => command.replace(/^\$ /, "")} label=${t("page.copy_command")} />
						</div>`,
					)}
				</div>`
			: null}
		${gate.impacts.length
			? html`<ul class="impacts">${gate.impacts.map(
					(one) => html`<li><span class=${`change c-${one.change}`}>${t(`gate.${one.change}`)}</span> <code>${visible(one.path)}</code>
						<span class="plus">+${one.added}</span> <span class="minus">−${one.removed}</span>
						<span class="meta">${t(one.tracked ? "gate.tracked" : "gate.untracked")}</span></li>`,
				)}</ul>`
			: null}
		<ul class="plain computed">
			${gate.reasons.map((reason) => html`<li class="warn"><${Icon} name="warn" />${visible(reason)}</li>`)}
			${gate.doubtful ? html`<li class="warn"><${Icon} name="warn" />${t("gate.doubtful")}</li>` : null}
			${gate.lasting.map((reason) => html`<li class="warn"><${Icon} name="warn" />${visible(reason)}</li>`)}
			${gate.reversible ? html`<li><${Icon} name="undo" />${t(gate.commands.length ? "gate.reversible_command" : "gate.reversible")}</li>` : null}
		</ul>
		${said.length
			? html`<dl class="points" aria-label=${t("page.model_says")}>${said.map(([key, text]) => html`<dt>${t(key)}</dt><dd><${Sentence} text=${text} /></dd>`)}</dl>`
			: null}
		${diff.trim() ? html`<div data-subject><${Diff} text=${diff} /></div>` : null}
	</div>`;
}

export const LONGEST_NAME = 80;

/** Returns what a question is about, if it is about a command or files. */
export const subjectOf = ({ gate }) => gate?.commands[0] ?? gate?.impacts.map((impact) => impact.path).join(", ") ?? "";

/** Moves the focus after an answer: to the input line, or to the top if there is none. */
function giveFocus() {
	if (document.activeElement !== document.body) return;
	const line = matchMedia("(hover: hover)").matches ? document.querySelector(".composer textarea:not(:disabled)") : null;
	(line ?? document.getElementById("main"))?.focus({ preventScroll: true });
}

/** One open question. `first`: number keys answer it; `alone`: there is no input line below. */
export function Card({ question, session, first, alone, tell }) {
	const [busy, setBusy] = useState(false);
	const [mode, setMode] = useState(question.kind === "edit" ? "edit" : "");
	const [text, setText] = useState(question.kind === "edit" ? question.text : "");
	const [problem, setProblem] = useState("");
	const [typed, setTyped] = useState(false);
	const field = useRef(null);
	useSight(question.question_id);
	useEffect(() => {
		if (question.secret) field.current.focus();
		return () => setTimeout(giveFocus, 0);
	}, []);
	const { gate } = question;
	const choices = question.choices.map((one, place) => ({ ...one, rare: one.number > NUMBERED, number: one.number || place + 1 })).sort((one, other) => one.number - other.number);
	const grave = gate?.risk === "forbidden";

	const send = async (answer) => {
		// A field for editing may cover what was read.
		const edits = answer.choice === "edit" && wasRead(question.question_id);
		if (busy || !(edits || inSight(question.question_id, session, tell, accepts(answer)))) return;
		setBusy(true);
		try {
			const { taken, told } = await session.answer(question.question_id, { ...answer, plan: wasRead(DRAFT) });
			if (taken === "edit") startEdit();
			else if (taken === "closed") tell(told?.[0] ?? t("question.elsewhere"));
			setProblem(taken === "closed" ? "" : (told ?? []).join(" "));
		} catch (error) {
			setProblem(error.message);
		}
		setBusy(false);
	};
	const startEdit = () => {
		setMode("edit");
		setText(gate?.editable ?? question.text);
	};
	const choose = (choice) => {
		if (choice.key === "edit") startEdit();
		else if (choice.wants_text && !text.trim()) {
			setMode(choice.key);
			setProblem(t("duck.words"));
		} else if (grave && accepts(choice)) {
			setTyped(true);
			setProblem(t("gate.word"));
		} else {
			send({ choice: choice.key, text: choice.wants_text ? text : "" });
			return;
		}
		setTimeout(() => field.current?.focus(), 0);
	};
	const words = (event) => {
		event.preventDefault();
		if (mode === "edit") send(text.trim() ? { choice: "edit", text } : { choice: "no" });
		else if (text.trim()) send(mode ? { choice: mode, text } : { text });
	};
	useEffect(() => {
		if (!first) return undefined;
		const key = (event) => {
			const empty = event.target.matches(".composer textarea") && !event.target.value;
			const typing = event.target.matches("input, textarea, select") && !empty;
			const choice = choices.find((one) => one.number === Number(event.key));
			// A held key was pressed before the question came.
			if (event.repeat || typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || question.kind === "text" || !choice) return;
			event.preventDefault();
			if (inSight(question.question_id, session, tell, accepts(choice))) choose(choice);
		};
		document.addEventListener("keydown", key);
		return () => document.removeEventListener("keydown", key);
	});
	const plainEnter = (event) => {
		if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return;
		if (mode === "edit" ? event.ctrlKey || event.metaKey : !event.shiftKey) words(event);
	};
	const label = mode === "edit" ? t("page.edit") : t(question.secret ? "page.secret" : "duck.free");
	const id = `q-${question.question_id}`;
	const typing = { id: `${id}-words`, ref: field, value: text, onInput: (event) => setText(event.target.value), onKeyDown: plainEnter };
	return html`<section
		role="group"
		class=${`card q-${question.kind}${gate ? ` risk-${gate.risk}` : ""}`}
		aria-labelledby=${id}
		data-question=${question.question_id}
		onFocusIn=${() => session.aim?.(question.question_id)}
		onClick=${() => session.aim?.(question.question_id)}
	>
		<header>
			${question.kind === "duck_call" ? html`<${Duck} />` : html`<${Icon} name="gate" />`}
			<h2 id=${id}>${question.job ? html`<span class="chip">${visible(question.job_name)}</span> ` : null}${visible(question.title)}</h2>
			${gate?.action_ids.length ? html`<span class=${`badge risk-${gate.risk}`}>${t("gate.risk", { level: t(`gate.risk.${gate.risk}`) })}</span>` : null}
		</header>
		<div class="inside">
			${gate ? html`<${Gate} gate=${gate} />` : null}
			${question.details.length ? html`<div class="details">${question.details.map((line) => html`<p><${Sentence} text=${line} /></p>`)}</div>` : null}
		</div>
		<footer>
			${problem ? html`<p class="problem" role="alert">${visible(problem)}</p>` : null}
			<div class="choices">
				${choices.map(
					(choice) => html`<button
						class=${choice.key === "yes" && !grave ? "primary" : ""}
						disabled=${busy || !session.writable}
						aria-expanded=${choice.key === "edit" || choice.wants_text ? String(mode === choice.key) : undefined}
						onClick=${() => choose(choice)}
					>${question.kind === "text" || !first || choice.rare ? null : html`<kbd aria-hidden="true">${choice.number}</kbd>`}${visible(choice.label)}</button>`,
				)}
			</div>
			${first && !alone ? html`<${Notices} />` : null}
			${first && !alone && !mode && !typed && !question.secret ? null : html`<form class="words" onSubmit=${words}>
				<label class="unseen" for=${`${id}-words`}>${label}</label>
				${mode === "edit"
					? html`<textarea class="mono" rows=${Math.min(20, text.split("\n").length + 1)} ...${typing} />`
					: html`<input type=${question.secret ? "password" : "text"} placeholder=${label} autocomplete="off" ...${typing} />`}
				<button disabled=${busy || !session.writable || (mode !== "edit" && !text.trim())}>${t(mode === "edit" ? "page.use_this" : "page.answer")}</button>
			</form>`}
		</footer>
	</section>`;
}

/** A question on record with its answer, folded. */
export function Answered({ item }) {
	const { question, answer } = item;
	const label = question?.choices.find((one) => one.key === answer?.choice)?.label ?? answer?.choice;
	const told = answer ? t("page.answered", { answer: [label, answer.text].filter(Boolean).join(": ") }) : t("page.unanswered");
	if (!question) return html`<p class="text">${visible(told)}</p>`;
	const what = question.gate ? [...question.gate.commands, ...question.gate.impacts.map((one) => one.path)].join(", ") : "";
	return html`<details>
		<summary>${question.job ? html`<span class="chip">${visible(question.job_name)}</span>` : null}<span class="told">${visible(question.title)} ${what ? html`<code>${visible(what.slice(0, 160))}</code>` : null}</span>
			<span class=${`meta ${answer ? (answer.choice && accepts(answer) ? "ok" : "") : "open"}`}>${visible(told)}</span></summary>
		<div class="more">
			${question.gate ? html`<${Gate} gate=${question.gate} />` : null}
			${question.details.map((line) => html`<p><${Sentence} text=${line} /></p>`)}
		</div>
	</details>`;
}
