// Panels beside the conversation: changes, vitals, record, the prompt's layers.

import { html, useState } from "./vendor/htm-preact.js";
import { Chart } from "./chart.js";
import { LaterDiff } from "./diff.js";
import { Icon } from "./icons.js";
import { subject } from "./plan.js";
import { Comments, Proof, Review } from "./review.js";
import { moment, t, thousands, visible } from "./words.js";

/** Returns a panel's content, which the server keeps up to date. */
const reading = (session, name) => [session.panels[name]?.data ?? null, session.panels[name]?.problem];

const Reading = ({ problem, data, nothing, children }) =>
	problem ? html`<p class="problem">${visible(problem)}</p>` : data === null ? html`<p class="nothing">…</p>` : nothing ? html`<p class="nothing">${nothing}</p>` : children;

export function Changes({ session, tell }) {
	const [data, problem] = reading(session, "changes");
	const undo = (again) => session.undo(again).then(({ told }) => told?.length && tell(told.join(" ")), (error) => tell(error.message, "warn"));
	return html`<section aria-labelledby="changes-title"><h2 id="changes-title">${t("page.changes")}</h2>
		${session.writable
			? html`<div class="choices"><button onClick=${() => undo(false)}><${Icon} name="undo" />${t("page.undo")}</button><button onClick=${() => undo(true)}>${t("page.redo")}</button></div>`
			: null}
		<${Reading} problem=${problem} data=${data} nothing=${data?.length === 0 ? t("page.no_changes") : ""}>
			<ul class="turns">${[...(data ?? [])].reverse().map((one) => html`<${Turn} key=${one.turn} turn=${one} session=${session} tell=${tell} />`)}</ul>
		<//>
		<${Comments} session=${session} tell=${tell} />
	</section>`;
}

function Turn({ turn, session, tell }) {
	const [open, setOpen] = useState(false);
	const undone = turn.files.every((path) => turn.taken.includes(path));
	return html`<li>
		<h3>
			${t("page.turn", { turn: turn.turn })} ${turn.at ? html`<span class="meta">${moment(turn.at)}</span>` : null}
			${undone ? html` <span class="badge">${t("page.taken_back")}</span>` : null}
		</h3>
		<ul class="impacts">${turn.files.map((path) => html`<li class=${turn.taken.includes(path) ? "undone" : ""}><code>${visible(path)}</code></li>`)}</ul>
		${turn.proof ? html`<${Proof} proof=${turn.proof} line=${turn.shown} session=${session} tell=${tell} />` : null}
		${session.writable && !undone
			? html`<details onToggle=${(event) => setOpen(event.target.open)}>
					<summary>${t("page.look_through")}</summary>
					${open ? html`<${Review} session=${session} turn=${turn.turn} tell=${tell} />` : null}
				</details>`
			: null}
		<${LaterDiff} read=${() => session.read(`changes?turn=${turn.turn}`)} />
	</li>`;
}

export function Health({ session }) {
	const [data, problem] = reading(session, "chart");
	return html`<section aria-labelledby="health-title"><h2 id="health-title">${t("page.health")}</h2>
		<${Reading} problem=${problem} data=${data}><${Chart} points=${data ?? []} /><//>
	</section>`;
}

/** Returns the reason; nothing if it is only the beginning of the answer. */
const reason = ({ operation, why, why_told: whyTold, told }) =>
	whyTold ? whyTold : operation.startsWith("user.") ? t("audit.typed") : (told ?? "").startsWith(why.replace(/…$/, "")) ? "" : why;

const MARKS = { true: "check", false: "cross", null: "ring" };

export function Audit({ session }) {
	const [data, problem] = reading(session, "audit");
	return html`<section aria-labelledby="audit-title"><h2 id="audit-title">${t("page.audit")}</h2>
		<${Reading} problem=${problem} data=${data} nothing=${data?.length === 0 ? t("audit.nothing") : ""}>
			<ol class="audit">${[...(data ?? [])].reverse().map(
				(one) => html`<li><${Icon} name=${MARKS[String(one.ok ?? null)]} label=${t(one.ok ? "page.ok" : one.ok === false ? "page.failed" : "page.open")} />
					<div><code>${visible(one.operation)}</code> ${visible(subject(one)).slice(0, 160)} <span class="meta">${moment(one.at)}</span>
						${[["why", reason(one)], ["answer", [one.answer_told, one.answer_text].filter(Boolean).join(": ") || one.answer], ["came", one.told]].map(([name, text]) => (text ? html`<p class="what">${t(`audit.${name}`)}: ${visible(text)}</p>` : null))}</div></li>`,
			)}</ol>
		<//>
	</section>`;
}

export function Layers({ session }) {
	const [data, problem] = reading(session, "context");
	const layers = data ?? [];
	const most = Math.max(1, ...layers.map((one) => one.tokens));
	const sum = layers.reduce((total, one) => total + one.tokens, 0);
	return html`<section aria-labelledby="layers-title"><h2 id="layers-title">${t("page.layers")}</h2>
		<${Reading} problem=${problem} data=${data}>
			<ul class="layers">${layers.map(
				(one) => html`<li><span>${visible(one.label)}</span><span class="meta">${thousands(one.tokens)}${one.budget ? ` / ${thousands(one.budget)}` : ""}</span>
					<progress max=${most} value=${one.tokens} aria-label=${visible(one.label)} /></li>`,
			)}</ul>
			<p class="what">${t("page.tokens", { tokens: thousands(sum) })}</p>
		<//>
	</section>`;
}
