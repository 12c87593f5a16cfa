// Actions on fleets, tasks and attempts, and the signs of their states.

import { html, useLayoutEffect, useRef, useState } from "./vendor/htm-preact.js";
import { Icon, Spinner } from "./icons.js";
import { post } from "./requests.js";
import { duration, t, visible } from "./words.js";

const SIGNS = {
	done: "check",
	merged: "check",
	failed: "cross",
	cancelled: "cross",
	budget: "warn",
	choose: "gate",
};

export const Sign = ({ state }) =>
	state === "running"
		? html`<${Spinner} label=${t("fleet.state.running")} />`
		: html`<${Icon} name=${SIGNS[state] ?? "ring"} label=${t(`fleet.state.${state}`)} />`;

/** The time of work, without waiting. */
export const timeOf = (attempts) => {
	const since = ({ state, taken, open_questions }) => (state === "running" && !open_questions ? Date.now() / 1000 - taken : 0);
	const seconds = attempts.reduce((total, attempt) => total + (attempt.seconds || since(attempt)), 0);
	return seconds ? duration(seconds) : "";
};
export const live = ({ state }) => state === "running" || state === "queued" || state === "waiting";
export const deed = (what, about, values) => ({ what, name: t(`page.fleet_${about}`), text: t(`page.sure_${about}`, values) });

/** Buttons for actions. The first click says what will happen, the second does it, if it would still be the same. */
export function Deeds({ deeds, place, doing, again, tell }) {
	const [asked, setAsked] = useState("");
	const leave = useRef(null);
	const sure = deeds.find((one) => JSON.stringify(one) === asked);
	useLayoutEffect(() => (sure ? leave.current?.focus() : setAsked("")), [Boolean(sure)]);
	const change = async ({ what, more }) => {
		setAsked("");
		await post("api/fleet/change", { what, ...place, ...more }).catch((error) => tell(error.message, "warn"));
		again();
	};
	if (doing) return html`<p class="what" role="status"><${Spinner} /> ${t("page.doing_merge")}</p>`;
	if (sure) {
		return html`<div class="sure" role="group" aria-label=${sure.name}>
			<p>${visible(sure.text)}</p>
			<div class="choices">
				<button ref=${leave} onClick=${() => setAsked("")}>${t("page.leave_it")}</button>
				<button class=${sure.what === "cancel" ? "bad" : "primary"} onClick=${() => change(sure)}>${sure.name}</button>
			</div>
		</div>`;
	}
	if (!deeds.length) return null;
	return html`<div class="choices">
		${deeds.map((one) => html`<button onClick=${() => (one.text ? setAsked(JSON.stringify(one)) : change(one))}>${one.name}</button>`)}
	</div>`;
}
