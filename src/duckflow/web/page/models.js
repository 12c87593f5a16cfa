// Providers with keys, one's own servers, and a check whether a model answers.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { Icon } from "./icons.js";
import { get, post } from "./requests.js";
import { ModelField } from "./start.js";
import { t, visible } from "./words.js";

export function Models({ lock }) {
	const [known, setKnown] = useState(null);
	const [problem, setProblem] = useState("");
	const [model, setModel] = useState("");
	const read = () => get("api/endpoints").then(setKnown, (error) => (error.status === 401 ? lock() : setProblem(error.message)));
	useEffect(() => {
		read();
	}, []);
	const may = known?.keys_here;
	return html`<main class="page models" id="main" tabindex="-1">
		<h1>${t("page.models")}</h1>
		${problem ? html`<p class="problem" role="alert">${visible(problem)}</p>` : null}
		<section aria-labelledby="try-title">
			<h2 id="try-title">${t("page.models_try")}</h2>
			<div class="new-session"><${ModelField} value=${model} choose=${setModel} bare=${true} /></div>
		</section>
		<section aria-labelledby="keys-title">
			<h2 id="keys-title">${t("page.models_keys")}</h2>
			${known && !may ? html`<p class="what">${t("page.keys_elsewhere")}</p>` : null}
			<ul class="endpoints">
				${(known?.endpoints ?? []).map((endpoint) => html`<${Endpoint} key=${endpoint.name} endpoint=${endpoint} may=${may} usual=${known.lacks_default} read=${read} />`)}
			</ul>
		</section>
		${may
			? html`<section aria-labelledby="own-title">
					<h2 id="own-title">${t("page.models_own")}</h2>
					<${Adding} fields=${["address", "key", "model"]} usual=${known.lacks_default} read=${read} />
				</section>`
			: null}
	</main>`;
}

function Endpoint({ endpoint, may, usual, read }) {
	const [open, setOpen] = useState(false);
	const { name, where, key, fixed } = endpoint;
	return html`<li>
		<p class="row-of">
			<${Icon} name=${key ? "check" : "ring"} /><b>${visible(name)}</b>
			<span class="meta mono">${visible(where)}</span>
			<span class="meta">${key ? t("page.key_from", { source: visible(key) }) : t("page.key_none")}</span>
			${may && !fixed
				? html`<button class="link" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>
						${t(key ? "page.key_change" : "page.key_set")} <span class="unseen">${visible(name)}</span>
					</button>`
				: null}
		</p>
		${open ? html`<${Adding} fields=${["key", "model"]} name=${name} usual=${usual} read=${read} />` : null}
	</li>`;
}

/** A form for a key, which is neither kept nor shown here. */
function Adding({ fields, name = "", usual, read }) {
	const [values, setValues] = useState({});
	const [isDefault, setDefault] = useState(usual);
	const form = useRef();
	useEffect(() => name && form.current[0].focus(), []);
	const [told, setTold] = useState({});
	const [busy, setBusy] = useState(false);
	const send = async (event) => {
		event.preventDefault();
		setBusy(true);
		setTold({ text: t("page.model_trying") });
		try {
			const answer = await post("api/endpoints", { name, default: isDefault, ...values });
			setValues({ ...values, key: "" });
			await read();
			setTold({ text: answer.told.join("\n"), kind: "ok" });
		} catch (error) {
			if (error.key) setValues({ ...values, key: "" });
			setTold({ text: error.message, kind: "warn" });
		}
		setBusy(false);
	};
	const enough = name ? values.key?.trim() : values.address?.trim();
	return html`<form ref=${form} class="new-session" onSubmit=${send} aria-label=${name || t("page.models_own")}>
		${fields.map(
			(field) => html`<label>
				${t(`page.own_${field}`)}
				<input
					type=${field === "key" ? "password" : "text"}
					value=${values[field] ?? ""}
					autocomplete="off"
					spellcheck="false"
					onInput=${(event) => setValues({ ...values, [field]: event.target.value })}
				/>
			</label>`,
		)}
		<label class="all"><input type="checkbox" checked=${isDefault} onChange=${(event) => setDefault(event.target.checked)} />${t("page.own_default")}</label>
		<div class="choices"><button class="primary" disabled=${busy || !enough}>${t("page.own_keep")}</button></div>
		<p class=${`what ${told.kind ?? ""}`} role="status">${visible(told.text ?? "")}</p>
	</form>`;
}
