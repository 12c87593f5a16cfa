// The choices for a new session or fleet: a folder, a model, a mode.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { get, post } from "./requests.js";
import { t, thousands, visible } from "./words.js";

export const MODES = ["ask", "auto-edit", "auto", "plan", "full-auto"];

export function NewSession({ folder, go, tell, open: opened }) {
	const [open, setOpen] = useState(opened);
	const [where, setWhere] = useState(folder);
	const [message, setMessage] = useState("");
	const [mode, setMode] = useState("");
	const [model, setModel] = useState("");
	const [busy, setBusy] = useState(false);
	const field = useRef(null);
	useEffect(() => field.current?.focus(), [open]);
	const begin = async (event) => {
		event.preventDefault();
		setBusy(true);
		try {
			const { id } = await post("api/sessions", { folder: where, message, mode, model });
			go(`#/s/${encodeURIComponent(id)}`);
		} catch (error) {
			tell(error.message, "warn");
			setBusy(false);
		}
	};
	const key = (event) => {
		if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229) begin(event);
	};
	if (!open) return html`<button class="primary new" onClick=${() => setOpen(true)}>${t("page.new")}</button>`;
	return html`<form class="new-session" onSubmit=${begin} aria-label=${t("page.new")}>
		<${FolderField} value=${where} choose=${setWhere} />
		<${ModelField} value=${model} choose=${setModel} />
		<${ModeField} value=${mode} choose=${setMode} />
		<label>
			${t("page.first_message")}
			<textarea ref=${field} rows="3" value=${message} onInput=${(event) => setMessage(event.target.value)} onKeyDown=${key} />
		</label>
		<div class="choices">
			<button class="primary" disabled=${busy || !where.trim()}>${t("page.begin")}</button>
			<button type="button" onClick=${() => setOpen(false)}>${t("page.cancel")}</button>
		</div>
	</form>`;
}

export const ModeField = ({ value, choose }) => html`<label>
	${t("page.mode")}
	<select value=${value} onChange=${(event) => choose(event.target.value)}>
		${["", ...MODES].map((mode) => html`<option value=${mode}>${mode || t("page.mode_default")}</option>`)}
	</select>
</label>`;

const about = ({ window, price }) =>
	[
		window ? t("page.model_window", { window: thousands(window) }) : "",
		price ? t("page.model_price", { input: price[0], output: price[1] }) : "",
	]
		.filter(Boolean)
		.join(" · ");

/** A field for a model's name: reachable ones are offered with windows and prices, any other can be tried. */
export function ModelField({ value, choose, bare }) {
	const [models, setModels] = useState(null);
	const [told, setTold] = useState({});
	const look = () => models ?? (setModels([]), get("api/models").then(setModels, () => {}));
	const check = async () => {
		setTold({ text: t("page.model_trying") });
		await post("api/models/check", { model: value }).then(
			(answer) => setTold({ text: answer.told.join(" "), kind: "ok" }),
			(error) => setTold({ text: error.message, kind: "warn" }),
		);
	};
	const known = models?.find((model) => model.name === value);
	return html`<div class="model-field">
		<label>
			${t("page.model")}
			<input
				list="models"
				value=${value}
				placeholder=${t("page.model_default")}
				onFocus=${look}
				onInput=${(event) => (choose(event.target.value), setTold({}))}
				autocomplete="off"
				spellcheck="false"
			/>
		</label>
		<datalist id="models">${(models ?? []).map((model) => html`<option value=${model.name}>${about(model)}</option>`)}</datalist>
		${known ? html`<p class="meta">${about(known)}</p>` : null}
		<p class="row-of">
			<button type="button" class="link" onClick=${check}>${t("page.model_try")}</button>
			${bare ? null : html`<a href="#/models">${t("page.model_add")}</a>`}
		</p>
		<p class=${`what ${told.kind ?? ""}`} role="status">${visible(told.text ?? "")}</p>
	</div>`;
}

export const FolderField = ({ value, choose }) => html`<div>
	<label>
		${t("page.folder")}
		<input class="mono" value=${value} onInput=${(event) => choose(event.target.value)} autocomplete="off" spellcheck="false" />
	</label>
	<${Folders} choose=${choose} />
</div>`;

/** A field for a folder: those that were worked in last, and those below the home. */
function Folders({ choose }) {
	const [shown, setShown] = useState(null);
	const [problem, setProblem] = useState("");
	const look = async (at) => {
		try {
			const found = await get(`api/folders?${new URLSearchParams({ at })}`);
			setShown(found);
			setProblem("");
			if (at) choose(found.at);
		} catch (error) {
			setProblem(error.message);
		}
	};
	const button = (name, act) => html`<li><button type="button" class="link mono" onClick=${act}>${visible(name)}</button></li>`;
	return html`<details class="folders" onToggle=${(event) => event.target.open && !shown && look("")}>
		<summary>${t("page.browse")}</summary>
		${problem ? html`<p class="problem" role="alert">${visible(problem)}</p>` : null}
		${shown?.recent.length
			? html`<p class="meta">${t("page.recent")}</p>
					<ul class="plain">
						${shown.recent.map((folder) => button(folder, () => choose(folder)))}
					</ul>`
			: null}
		${shown
			? html`<p class="meta mono">${visible(shown.at)}</p>
					<ul class="plain below">
						${shown.above ? button("..", () => look(shown.above)) : null}
						${shown.folders.map((name) => button(name, () => look(`${shown.at}/${name}`)))}
					</ul>`
			: null}
	</details>`;
}
