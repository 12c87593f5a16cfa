// The conversation: what was said, thought, done and asked.

import { Component, html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/htm-preact.js";
import { Sentence, dress } from "./code.js";
import { Copy } from "./copy.js";
import { Diff, looksLikeDiff } from "./diff.js";
import { Guard } from "./guard.js";
import { Duck, Icon, Spinner } from "./icons.js";
import { Draft, PlanTree, subject } from "./plan.js";
import { Answered } from "./question.js";
import { Proof } from "./review.js";
import { Long, Tail } from "./tail.js";
import { clock, percent, printed, t, visible } from "./words.js";

/** A text of the model. The server made HTML of its Markdown and let nothing else through. */
export function Markdown({ source }) {
	const box = useRef(null);
	useLayoutEffect(() => dress(box.current), [source]);
	return html`<div class="md" ref=${box} dangerouslySetInnerHTML=${{ __html: source }} />`;
}

export const asText = (source) => {
	const box = new DOMParser().parseFromString(source, "text/html").body;
	for (const part of box.querySelectorAll("p,li,pre,h1,h2,h3,h4,tr")) part.append("\n");
	return box.textContent.trim();
};

const LONG_MESSAGE = 2000;

const Row = ({ icon, kind, children, label }) => html`<article class=${`row r-${kind}`} aria-label=${label}>
	<div class="gutter">${icon}</div>
	<div class="body">${children}</div>
</article>`;

function Action({ item, session }) {
	const { action, result, job, job_name: name } = item;
	const state = result ? (item.well ? "check" : result.ok ? "warn" : "cross") : "run";
	const runs = session.writable && item.state === "running" && session.state.jobs?.[job]?.status !== "paused";
	const open = runs ? html`<${Spinner} label=${t("page.running")} />` : html`<${Icon} name="pause" label=${t("page.status.interrupted")} />`;
	const icon = result ? html`<${Icon} name=${state} label=${t({ check: "page.ok", warn: "page.unwell", cross: "page.failed" }[state])} />` : open;
	const about = subject(action);
	const told = result?.for_user || about || item.doing || item.operation;
	return html`<${Row} icon=${icon} kind=${`action ${state}${job ? " of-job" : ""}`}>
		<details>
			<summary>
				${name ? html`<span class="chip">${visible(name)}</span>` : null}<span class="told">${visible(told)}</span>
				<span class="meta">${visible(item.operation)}${result?.seconds >= 0.1 ? html` · ${result.seconds.toFixed(1)}s` : null}</span>
			</summary>
			<div class="more">
				${action?.reasoning ? html`<p class="quoted"><${Sentence} text=${action.reasoning} /></p>` : null}
				${action ? html`<${Arguments} args=${action.args} />` : null}
				${result?.changed?.length ? html`<p class="files">${result.changed.map((path) => html`<code>${visible(path)}</code> `)}</p>` : null}
				${result?.for_model ? html`<${Result} text=${printed(result.for_model)} />` : null}
			</div>
		</details>
		${!result && session.outputs[job ?? ""] ? html`<${Tail} text=${session.outputs[job ?? ""]} lines=${job ? 5 : 14} />` : null}
	<//>`;
}

const Arguments = ({ args }) => html`<dl class="args">
	${Object.entries(args ?? {}).map(([name, value]) => {
		const text = visible(typeof value === "string" ? value : JSON.stringify(value));
		return html`<dt>${visible(name)}</dt><dd>${text.length > 120 || text.includes("\n") ? html`<${Long} text=${text} />` : html`<code>${text}</code>`}</dd>`;
	})}
</dl>`;

const Result = ({ text }) => (looksLikeDiff(text) ? html`<${Diff} text=${text} />` : html`<${Long} text=${text} />`);

function Why({ item }) {
	const { rationale, thoughts } = item;
	const facts = [
		[t("page.sure"), percent(item.confidence)],
		[t("page.work"), t(`work.${item.profile}`)],
		[t("page.alternative"), item.alternative],
	].filter(([, value]) => value);
	return html`<${Row} icon=${html`<${Icon} name="think" />`} kind="why">
		<details>
			<summary><span class="told"><${Sentence} text=${rationale || t("page.thoughts")} /></span></summary>
			<div class="more">
				<dl class="facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd><${Sentence} text=${value} /></dd>`)}</dl>
				${thoughts ? html`<${Long} text=${visible(thoughts)} />` : null}
			</div>
		</details>
	<//>`;
}

/** A text with its speaker: the person, the model, or a tool that shows pictures. */
const Text = ({ item, session }) => html`
	${item.by === "user" ? html`<${User} item=${item} />` : null}
	${item.by === "model" ? html`<${item.duck ? DuckCall : Said} item=${item} />` : null}
	${item.pictures?.length ? html`<${Pictures} item=${item} session=${session} />` : null}`;

const Said = ({ item }) => html`<${Row} icon=${html`<${Duck} />`} kind=${item.state === "streaming" ? "said live" : "said"} label="Duckflow"><${Markdown} source=${item.html} />
	${item.state === "streaming" ? null : html`<${Copy} read=${() => asText(item.html)} label=${t("page.copy_answer")} />`}<//>`;

const DuckCall = ({ item }) => html`<${Row} icon=${html`<${Duck} />`} kind="duck" label=${t("duck.asks")}>
	<h2>${t("duck.asks")}</h2><${Markdown} source=${item.html} /><p class="hint">${t("duck.own")}</p>
<//>`;

const User = ({ item }) => html`<${Row} icon=${html`<${Icon} name="user" />`} kind="user" label=${t("page.you")}>
	${item.meanwhile ? html`<span class="chip">${t("page.meanwhile")}</span>` : null}
	<${Long} text=${visible(item.text)} most=${LONG_MESSAGE} draw=${(shown) => html`<p class="text">${shown}</p>`} />
<//>`;

const Pictures = ({ item, session }) => html`<${Row} icon=${html`<${Icon} name="picture" />`} kind="pictures">
	<div class="pictures">${item.pictures.map((one) => html`<img src=${`${session.path}/pictures/${one.digest}`} alt=${visible(one.name)} title=${`${visible(one.name)} ${one.width}×${one.height}`} />`)}</div>
<//>`;

const Note = ({ item, session, tell }) => {
	const kind = item.well ? "note" : "warn";
	return html`<${Row} icon=${item.proof ? null : html`<${Icon} name=${kind} />`} kind=${kind}>
		${item.proof ? html`<${Proof} proof=${item.proof} line=${item.text} session=${session} tell=${tell} />` : html`<p class="text">${visible(item.text)}</p>`}
	<//>`;
};

const Lines = ({ item }) => html`<${Row} icon=${html`<${Icon} name="user" />`} kind="lines">
	${item.line ? html`<p class="typed"><code>${visible(item.line)}</code></p>` : null}
	${item.problem ? html`<p class="text warn">${visible(item.problem)}</p>` : null}
	${item.text ? html`<${Result} text=${visible(item.text)} />` : null}
<//>`;

function Report({ item }) {
	const { report, status, job_name: name } = item;
	const told = t(`job.ended.${status}`, { job: name, ...report });
	const lines = [
		...report.causes.map((cause) => ["warn", t("job.cause", { cause })]),
		...report.shown.map((shown) => ["ok", t("job.shown", { shown })]),
		...report.unverified.map((step) => ["warn", t("job.unverified", { step })]),
	];
	if (report.next_action || status !== "completed") lines.push(["", t("job.next", { next: report.next_action || t(`job.next_${status}`) })]);
	return html`<${Row} icon=${html`<${Icon} name="job" />`} kind=${`report ${status}`}>
		<p class="text"><b>${visible(told)}</b></p>
		${item.html ? html`<${Markdown} source=${item.html} />` : null}
		${lines.length ? html`<ul class="plain">${lines.map(([kind, line]) => html`<li class=${kind}><${Sentence} text=${line} /></li>`)}</ul>` : null}
	<//>`;
}

/** A plan as it was proposed. The key makes the draft a new one, which nobody has read, when anything in it changes. */
function Plan({ item: { plan }, session, tell }) {
	const { status } = session.state.plans?.[plan.plan_id] ?? plan;
	const waits = session.writable && plan.status === "draft" && status === "draft" && session.items.latestPlan?.plan === plan;
	return html`<${Row} icon=${html`<${Icon} name="side" />`} kind="plan">
		${waits ? html`<${Draft} key=${JSON.stringify(plan)} session=${session} plan=${plan} tell=${tell} />` : html`<${PlanTree} plan=${plan} status=${status} heading="h2" />`}
	<//>`;
}

const SHOWN = {
	turn: ({ item }) => html`<div class="turn"><span>${t("page.turn", { turn: item.turn })} · ${clock(item.at)}</span></div>`,
	text: Text,
	reason: Why,
	action: Action,
	question: ({ item, session }) =>
		!item.answer && session.questions.some((one) => one.question_id === item.id)
			? null
			: html`<${Row} icon=${html`<${Icon} name="gate" />`} kind="asked"><${Answered} item=${item} /><//>`,
	plan: Plan,
	report: Report,
	notice: Note,
	command: Lines,
};

/** A row, drawn again only when it has changed, or while it runs. */
class Item extends Component {
	shouldComponentUpdate(next) {
		const { item, v, sought } = this.props;
		const open = { action: !next.item.result, question: !next.item.answer, plan: next.item.plan?.status === "draft", notice: next.item.proof?.unasked?.length };
		return next.item !== item || next.v !== v || next.sought !== sought || open[next.item.kind];
	}

	render({ item, session, sought, tell }) {
		const shown = html`<${Guard}><${SHOWN[item.kind]} item=${item} session=${session} tell=${tell} /><//>`;
		return sought ? html`<div class="sought">${shown}</div>` : shown;
	}
}

/** The text that is being written, and the thoughts. */
function Live({ session }) {
	const { in_turn, doing, items } = session;
	const live = [...items.live.values()];
	const said = live.filter((item) => item.by === "model");
	const running = items.list.some((item) => item.kind === "action" && item.state === "running" && !item.job);
	return html`${said.length
			? said.map((item) => html`<${Said} key=${item.id} item=${item} />`)
			: live.map((item) => html`<${Row} icon=${html`<${Icon} name="think" />`} kind="why live">
					<details><summary><span class="told">${t("page.thinking")}</span></summary><pre class="out thoughts" tabindex="0">${visible(item.text)}</pre></details>
				<//>`)}
		${session.outputs[""] && !running ? html`<${Row} kind="output"><${Tail} text=${session.outputs[""]} /><//>` : null}
		${in_turn && !said.length && !running && !session.questions.length
			? html`<div class="row r-wait"><div class="gutter"><${Spinner} /></div><div class="body"><p class="text">${visible(doing || t("page.working"))}</p></div></div>`
			: null}`;
}

const NEAR = 80;
const ROOM = 60;
const FRAMES = 12;

export function Talk({ session, tell, children }) {
	const box = useRef(null);
	const seen = useRef({ top: 0, settling: 0 });
	const [below, setBelow] = useState(false);
	const { list } = session.items;

	const asked = session.questions.map((one) => one.question_id).join();
	const showEnd = () => session.follows && (box.current.scrollTop = box.current.scrollHeight);
	useLayoutEffect(() => void showEnd());
	useEffect(() => setBelow(!session.follows), [list.at(-1)?.k]);
	useLayoutEffect(() => {
		// A question longer than the screen is shown from its beginning.
		const card = box.current.querySelector(".card");
		if (!card || !session.follows || card.offsetHeight + ROOM < box.current.clientHeight) return;
		session.follows = false;
		card.scrollIntoView({ block: "start" });
	}, [asked]);
	/** Scrolls until it stays: a row gets its height when first seen, and until then places move. */
	const settle = (show) => {
		const step = () => {
			seen.current.settling = box.current && show() ? seen.current.settling - 1 : 0;
			if (seen.current.settling > 0) requestAnimationFrame(step);
		};
		seen.current.settling = FRAMES;
		requestAnimationFrame(step);
	};
	const showSought = () => {
		const row = box.current.querySelector(".sought");
		row?.scrollIntoView({ block: "center" });
		return row;
	};
	useEffect(() => {
		if (session.sought) settle(showSought);
	}, [session.sought]);
	const opened = list.length > 0;
	useEffect(() => {
		if (opened) settle(showEnd);
	}, [opened]);
	useEffect(() => {
		const watch = new ResizeObserver(() => box.current && showEnd());
		watch.observe(box.current.firstElementChild);
		watch.observe(box.current);
		return () => watch.disconnect();
	}, []);

	const older = async () => {
		const before = box.current.scrollHeight - box.current.scrollTop;
		session.follows = false;
		if (await session.older()) setTimeout(() => box.current && (box.current.scrollTop = box.current.scrollHeight - before), 60);
	};
	const scrolled = ({ target }) => {
		// Only a person who scrolls up stops following. If the size has changed, nobody has scrolled.
		if (!target.clientHeight) return;
		const size = `${target.scrollHeight} ${target.clientHeight}`;
		const up = size === seen.current.size && target.scrollTop < seen.current.top;
		Object.assign(seen.current, { top: target.scrollTop, size });
		if (seen.current.settling) return;
		session.follows = target.scrollHeight - target.scrollTop - target.clientHeight < NEAR || (session.follows && !up);
		if (session.follows) setBelow(false);
		if (target.scrollTop < 200 && session.first > 1 && !session.follows) older();
	};
	const toEnd = () => {
		session.follows = true;
		showEnd();
		setBelow(false);
	};
	return html`<div class="talk-frame">
		<div class="talk" ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-live="off" aria-label=${t("page.conversation")}>
			<div class="column">
				${session.first > 1 ? html`<button class="link older" onClick=${older}>${t("page.older")}</button>` : null}
				${list.map((item) => html`<${Item} key=${item.k} item=${item} v=${item.v} sought=${item.k === session.sought} session=${session} tell=${tell} />`)}
				<${Live} session=${session} />
				${children}
			</div>
		</div>
		${below && !session.questions.length ? html`<button class="to-end" onClick=${toEnd}><${Icon} name="down" />${t("page.to_end")}</button>` : null}
	</div>`;
}
