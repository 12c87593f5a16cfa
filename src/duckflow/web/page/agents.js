// Agents with a task: each has its name, its task and a line, and buttons while it works.

import { html, useState } from "./vendor/htm-preact.js";
import { Sentence } from "./code.js";
import { useTick } from "./facts.js";
import { Icon, Spinner } from "./icons.js";
import { post } from "./requests.js";
import { elapsed } from "./tail.js";
import { duration, money, t, thousands, visible } from "./words.js";

const SIGNS = { done: "check", failed: "cross", waits: "gate" };

const Sign = ({ status }) =>
	status === "running"
		? html`<${Spinner} label=${t("agent.status.running")} />`
		: html`<${Icon} name=${SIGNS[status] ?? "pause"} label=${t(`agent.status.${status}`)} />`;

export function Agent({ agent, session, tell }) {
	const { agent_id: name, kind, task, usage, report, doing } = agent;
	useTick(1000, agent.status === "running" && session.writable);
	const waits = session.questions.some((question) => question.job === name);
	// If no process holds the session, nobody works in it.
	const works = agent.status === "running" && session.writable;
	const status = waits ? "waits" : agent.status === "running" && !works ? "interrupted" : agent.status;
	const facts = [
		kind,
		works && agent.began ? elapsed(agent.began) : agent.seconds ? duration(agent.seconds) : "",
		t("page.tokens", { tokens: thousands(usage.prompt_tokens + usage.completion_tokens) }),
		money(usage.cost_usd),
	].filter(Boolean);
	const told = [
		["page.found", report?.found],
		["page.changes", report?.changed?.join("\n")],
		["fleet.row.evidence", report?.evidence?.join("\n")],
		["page.ended_early", report?.open],
	].filter(([, text]) => text);
	return html`<li class=${`job agent${waits ? " waits" : ""}`}>
		<details>
			<summary>
				<span class="job-head">
					<${Sign} status=${status} /><b>${visible(name)}</b>
					<span class=${`badge b-${status}`}>${t(`agent.status.${status}`)}</span>
					<span class="meta">${visible(facts.join(" · "))}</span>
				</span>
				<span class="what"><${Sentence} text=${task} /></span>
			</summary>
			${told.length
				? html`<dl class="five">${told.map(([key, text]) => html`<dt>${t(key)}</dt><dd><${Sentence} text=${text} /></dd>`)}</dl>`
				: null}
		</details>
		${works && doing ? html`<p class="what now">${visible(doing)}</p>` : null}
		${works ? html`<${Reach} name=${name} session=${session} tell=${tell} />` : null}
	</li>`;
}

/** Says something to the agent, or stops it. The conversation goes on with its report. */
function Reach({ name, session, tell }) {
	const [text, setText] = useState("");
	const act = (more) => post(`${session.path}/agent`, { agent: name, ...more }).catch((error) => tell(error.message, "warn"));
	const send = async (event) => {
		event.preventDefault();
		if (!text.trim()) return;
		await act({ text });
		setText("");
	};
	const label = t("page.agent_tell", { agent: name });
	return html`<form class="words" onSubmit=${send}>
		<input aria-label=${label} placeholder=${label} value=${text} autocomplete="off" onInput=${(event) => setText(event.target.value)} />
		<button disabled=${!text.trim()}>${t("page.send")}</button>
		<button type="button" onClick=${() => act({})}><${Icon} name="stop" />${t("page.agent_stop", { agent: name })}</button>
	</form>`;
}
