// The form for a new fleet: pasted tasks or a file, and settings for all of them.

import { html, useState } from "./vendor/htm-preact.js";
import { post } from "./requests.js";
import { FolderField, ModeField, ModelField } from "./start.js";
import { t, visible } from "./words.js";

const LONGEST_FILE = 2 * 1024 * 1024;

/** Counts the tasks in a text as the program reads it: TOML tables, or lines. */
const counted = ({ tasks, toml }) => {
	if (toml) return (tasks.match(/^\s*\[\[\s*task\s*\]\]/gm) ?? []).length;
	return tasks.split("\n").filter((line) => line.trim() && !line.trim().startsWith("#")).length;
};

export function NewFleet({ folder, tell, began }) {
	const [open, setOpen] = useState(false);
	const [where, setWhere] = useState(folder);
	const [values, setValues] = useState({ tasks: "", toml: false, checks: "", model: "", mode: "", attempts: 1, budget: "" });
	const [problem, setProblem] = useState("");
	const [busy, setBusy] = useState(false);
	const set = (name) => (value) => setValues((before) => ({ ...before, [name]: value }));
	const typed = (name) => (event) => set(name)(event.target.value);
	const take = async (file) => {
		if (!file) return;
		if (file.size > LONGEST_FILE) tell(t("page.bad_file"), "warn");
		else {
			set("tasks")(await file.text());
			set("toml")(file.name.toLowerCase().endsWith(".toml"));
		}
	};
	const start = async (event) => {
		event.preventDefault();
		setBusy(true);
		setProblem("");
		try {
			const { fleet } = await post("api/fleet/start", { ...values, folder: where });
			setOpen(false);
			set("tasks")("");
			began(fleet);
		} catch (error) {
			setProblem(error.message);
		}
		setBusy(false);
	};
	if (!open) return html`<button class="primary new" onClick=${() => setOpen(true)}>${t("page.fleet_new")}</button>`;
	const count = counted(values);
	return html`<form class="new-session" onSubmit=${start} aria-label=${t("page.fleet_new")}>
		<${FolderField} value=${where} choose=${setWhere} />
		<label>
			${t("page.fleet_tasks")}
			<textarea class="mono" rows="6" value=${values.tasks} onInput=${typed("tasks")} />
		</label>
		<p class="row-of">
			<span class="meta" role="status">${t("page.fleet_count", { count })}</span>
			<label class="link">
				${t("page.fleet_file")}
				<input class="unseen" type="file" accept=".toml,.txt,.md" onChange=${(event) => take(event.target.files[0])} />
			</label>
			<label class="all"><input type="checkbox" checked=${values.toml} onChange=${(event) => set("toml")(event.target.checked)} /> TOML</label>
		</p>
		<label>
			${t("page.fleet_checks")}
			<textarea class="mono" rows="2" value=${values.checks} onInput=${typed("checks")} />
		</label>
		<${ModelField} value=${values.model} choose=${set("model")} />
		<${ModeField} value=${values.mode} choose=${set("mode")} />
		<div class="side-by-side">
			<label>
				${t("page.fleet_attempts")}
				<input type="number" min="1" max="4" value=${values.attempts} onInput=${(event) => set("attempts")(Number(event.target.value))} />
			</label>
			<label>
				${t("page.fleet_budget")}
				<input inputmode="decimal" value=${values.budget} onInput=${typed("budget")} />
			</label>
		</div>
		${problem ? html`<p class="problem" role="alert">${visible(problem)}</p>` : null}
		<div class="choices">
			<button class="primary" disabled=${busy || !count || !where.trim()}>${t("page.fleet_start")}</button>
			<button type="button" onClick=${() => setOpen(false)}>${t("page.cancel")}</button>
		</div>
	</form>`;
}
