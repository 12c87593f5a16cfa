// The input line: messages, steering, completion, files. The Enter of an input method sends nothing.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { Icon } from "./icons.js";
import { LONGEST_NAME, subjectOf } from "./question.js";
import { DRAFT, bring, inSight, seenSince, wasRead } from "./sight.js";
import { t, visible } from "./words.js";

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const LARGEST = 8 * 1024 * 1024;
const LOOK_MS = 120;

/** Returns what is being completed at the cursor: [where it begins, kind, the word], or nothing. */
function wanted(text, cursor) {
	const before = text.slice(0, cursor).replaceAll("／", "/").replaceAll("＠", "@");
	const command = /^\/(\S*)$/.exec(before);
	if (command) return [0, "command", command[1].normalize("NFKC")];
	const word = /^\/(\S+) (\S*)$/.exec(before);
	if (word) return [cursor - word[2].length, "word", word[2], word[1]];
	const file = /(?:^|\s)@"?([^\s"]*)$/.exec(before);
	return file ? [cursor - file[0].trimStart().length, "file", file[1]] : null;
}

/** Reads a file as it is; the conversation finds out what kind it is. */
const read = (file) =>
	new Promise((done, fail) => {
		const reader = new FileReader();
		reader.onload = () => done({ name: file.name || "picture.png", url: reader.result, isPicture: PICTURES.includes(file.type) });
		reader.onerror = () => fail(reader.error);
		reader.readAsDataURL(file);
	});

export function Composer({ session, tell }) {
	const kept = `duckflow-draft-${session.id}`;
	const [text, setTextOnly] = useState(() => sessionStorage.getItem(kept) ?? "");
	const [files, setFiles] = useState([]);
	const [offers, setOffers] = useState({ list: [], at: 0, from: 0 });
	const [over, setOver] = useState(false);
	const field = useRef(null);
	const looking = useRef(0);
	const recalled = useRef(-1);
	/** The time at which the present text of the line was begun. */
	const begun = useRef(0);
	// What is typed here can be read, and a key must not be.
	const writable = session.writable && !session.secret;

	const setText = (value) => {
		if (!value || !begun.current) begun.current = value ? performance.now() : 0;
		setTextOnly(value);
		sessionStorage.setItem(kept, value);
	};
	useEffect(() => {
		const box = field.current;
		box.rows = 1;
		box.rows = Math.min(12, Math.max(1, Math.round((box.scrollHeight - 18) / 22)));
	}, [text]);
	useEffect(() => {
		if (matchMedia("(hover: hover)").matches) field.current.focus();
	}, []);
	useEffect(() => {
		if (!session.offered) return;
		setText(session.offered);
		session.offered = "";
		field.current.focus();
	}, [session.offered]);

	useEffect(() => document.getElementById(`offer-${offers.at}`)?.scrollIntoView({ block: "nearest" }), [offers]);
	const close = () => setOffers({ list: [], at: 0, from: 0 });
	const complete = (value, cursor) => {
		clearTimeout(looking.current);
		const found = wanted(value, cursor);
		if (!found) return close();
		const [from, kind, word, command] = found;
		const show = (list) => setOffers({ list, at: 0, from });
		if (kind === "command") {
			const named = session.commands ?? [];
			const begin = named.filter((one) => one.name.startsWith(word));
			const inside = named.filter((one) => !one.name.startsWith(word) && one.name.includes(word));
			return show([...begin, ...inside].map((one) => ({ text: `/${one.name} `, shown: `/${one.name}`, help: one.help })));
		}
		if (kind === "word") {
			const words = session.commands?.find((one) => one.name === command)?.words ?? [];
			return show(words.filter((one) => one.startsWith(word) && one !== word).map((one) => ({ text: one, shown: one, help: "" })));
		}
		looking.current = setTimeout(async () => {
			const paths = await session.read(`files?q=${encodeURIComponent(word)}`).catch(() => []);
			const list = paths.map((path) => ({ text: path.includes(" ") ? `@"${path}" ` : `@${path} `, shown: path, help: "" }));
			if (wanted(field.current?.value ?? "", field.current?.selectionStart ?? 0)?.[2] === word) show(list);
		}, LOOK_MS);
		return undefined;
	};
	const accept = (offer) => {
		const cursor = field.current.selectionStart;
		const value = text.slice(0, offers.from) + offer.text + text.slice(cursor);
		setText(value);
		const place = offers.from + offer.text.length;
		close();
		setTimeout(() => {
			field.current.focus();
			field.current.setSelectionRange(place, place);
			if (offer.text.startsWith("/")) complete(value, place);
		}, 0);
	};

	const send = async (later = false) => {
		const said = text.trim();
		if (!said && !files.length) return;
		const asked = session.target;
		// Words begun before the question could be read were not meant for it, unless the person chose it.
		const since = asked ? seenSince(asked.question_id) : 0;
		const target = since && (begun.current >= since || session.aimed === asked.question_id) ? asked : null;
		const more = { files: files.map(({ name, url }) => ({ name, data: url.slice(url.indexOf(",") + 1) })) };
		if (later) more.later = true;
		if (target) more.question_id = target.question_id;
		if (target && session.questions.length > 1) more.aimed = true;
		more.plan = wasRead(DRAFT);
		setText("");
		setFiles([]);
		recalled.current = -1;
		session.follows ||= !session.questions.length;
		try {
			const { taken, told, goes } = await session.say(said, more);
			if (goes) location.hash = goes;
			if (taken === "unclear" && !target) {
				setText(said);
				const id = session.target?.question_id;
				if (id) session.aim(id);
				if ((id || session.plan?.status === "draft") && !inSight(id ?? DRAFT, session, tell, true)) return;
			}
			// Words for a question that was closed meanwhile stay.
			if (taken === "closed" && !field.current.value) setText(said);
			if (told?.length) tell(told.join(" "), taken === "aside" ? "note" : "warn");
		} catch (error) {
			setText(said);
			setFiles(files);
			tell(error.message, "warn");
		}
	};
	const stop = async () => {
		const { unheard } = await session.interrupt().catch((error) => tell(error.message, "warn") ?? {});
		if (unheard && !field.current.value) setText(unheard);
		field.current.focus();
	};
	useEffect(() => {
		const escape = (event) => {
			const elsewhere = event.target.matches("input, textarea, select");
			if (event.key === "Escape" && session.busy && !elsewhere && !event.isComposing) stop();
		};
		document.addEventListener("keydown", escape);
		return () => document.removeEventListener("keydown", escape);
	}, [session]);
	const recall = (way) => {
		const said = session.items.list.filter((item) => item.by === "user").map((item) => item.text).reverse();
		const next = Math.max(-1, Math.min(said.length - 1, recalled.current + way));
		if (next === recalled.current) return false;
		recalled.current = next;
		setText(said[next] ?? "");
		return true;
	};
	const key = (event) => {
		if (event.isComposing || event.keyCode === 229) return;
		const open = offers.list.length > 0;
		const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
		const unmodified = !event.shiftKey && !event.ctrlKey && !event.metaKey && !event.altKey;
		if (open && move) setOffers({ ...offers, at: (offers.at + move + offers.list.length) % offers.list.length });
		else if (open && (event.key === "Tab" || event.key === "Enter") && unmodified && text.slice(offers.from).trim() !== offers.list[offers.at].text.trim()) accept(offers.list[offers.at]);
		else if (open && event.key === "Escape") close();
		else if (event.key === "Escape" && session.busy) stop();
		else if (event.key === "Enter" && unmodified) {
			close();
			send();
		} else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(true);
		else if (!(move && unmodified && (text === "" || recalled.current >= 0) && recall(-move))) return;
		event.preventDefault();
	};

	const take = async (given) => {
		const usable = [...given].filter((file) => file.size && file.size <= LARGEST);
		if (usable.length < given.length) tell(t("page.bad_file"), "warn");
		const taken = await Promise.allSettled(usable.map(read));
		setFiles((had) => [...had, ...taken.map((file) => file.value).filter(Boolean)]);
	};
	const paste = (event) => {
		if (!event.clipboardData.files.length) return;
		event.preventDefault();
		take(event.clipboardData.files);
	};
	const drop = (event) => {
		event.preventDefault();
		setOver(false);
		take(event.dataTransfer.files);
	};
	const listed = offers.list.length > 0;
	return html`<form
		class=${`composer${over ? " over" : ""}`}
		aria-label=${t("page.say")}
		onSubmit=${(event) => (event.preventDefault(), send())}
		onDragOver=${(event) => (event.preventDefault(), setOver(true))}
		onDragLeave=${() => setOver(false)}
		onDrop=${drop}
	>
		<${Target} session=${session} />
		${session.waiting?.length
			? html`<ul class="queued" aria-label=${t("page.unheard")}>${session.waiting.map(
					(one) => html`<li><${Icon} name=${one.later ? "later" : "send"} label=${t(one.later ? "page.later" : "page.steer")} /> ${visible(one.text)}</li>`,
				)}</ul>`
			: null}
		${files.length
			? html`<ul class="attached">${files.map(
					(file) => html`<li class=${file.isPicture ? "thumb" : "chip"}>
						${file.isPicture ? html`<img src=${file.url} alt=${visible(file.name)} />` : visible(file.name)}
						<button type="button" class=${file.isPicture ? "" : "link"} aria-label=${t("page.remove", { name: file.name })} onClick=${() => setFiles(files.filter((other) => other !== file))}><${Icon} name="cross" /></button>
					</li>`,
				)}</ul>`
			: null}
		${listed
			? html`<ul class="offers" role="listbox" id="offers" aria-label=${t("page.completions")}>${offers.list.map(
					(one, number) => html`<li
						id=${`offer-${number}`}
						role="option"
						aria-selected=${String(number === offers.at)}
						onMouseDown=${(event) => (event.preventDefault(), accept(one))}
					><code>${visible(one.shown)}</code> <span>${visible(one.help)}</span></li>`,
				)}</ul>`
			: null}
		<div class="line">
			<label class="tool" title=${t("page.add_file")}>
				<${Icon} name="clip" /><span class="unseen">${t("page.add_file")}</span>
				<input class="unseen" type="file" multiple disabled=${!writable} onChange=${(event) => (take(event.target.files), (event.target.value = ""))} />
			</label>
			<textarea
				ref=${field}
				rows="1"
				aria-label=${t("page.say")}
				aria-controls=${listed ? "offers" : undefined}
				aria-autocomplete="list"
				aria-activedescendant=${listed ? `offer-${offers.at}` : undefined}
				placeholder=${t(session.waitsFor && !session.secret ? "page.placeholder_answer" : session.in_turn ? "page.placeholder_steer" : "page.placeholder")}
				disabled=${!writable}
				value=${text}
				onInput=${(event) => (setText(event.target.value), complete(event.target.value, event.target.selectionStart))}
				onKeyDown=${key}
				onPaste=${paste}
				onBlur=${close}
			/>
			${session.busy ? html`<button type="button" class="tool stop" title=${t("page.stop")} aria-label=${t("page.stop")} onClick=${stop}><${Icon} name="stop" /></button>` : null}
			${session.in_turn && text.trim()
				? html`<button type="button" class="tool" title=${`${t("page.later")} (Ctrl+Enter)`} aria-label=${t("page.later")} onClick=${() => send(true)}>
						<${Icon} name="later" />
					</button>`
				: null}
			<button
				class="tool send"
				title=${t(session.in_turn ? "page.steer" : "page.send")}
				aria-label=${t(session.in_turn ? "page.steer" : "page.send")}
				disabled=${!writable || (!text.trim() && !files.length)}
			>
				<${Icon} name="send" />
			</button>
		</div>
		<p class="hint keys" aria-hidden="true">${t(session.target ? "page.keys_asked" : session.in_turn ? "page.keys_busy" : "page.keys")}</p>
	</form>`;
}

/** Returns the open question that a line answers. If there are several, the person chooses. */
function Target({ session }) {
	const { questions, target, secret } = session;
	const name = (question) => visible([question.job_name, subjectOf(question) || question.title].filter(Boolean).join(": ")).slice(0, LONGEST_NAME);
	if (!questions.length) return null;
	if (secret) return html`<p class="target">${t("page.secret_above")}</p>`;
	if (questions.length === 1) return html`<p class="target">${t("page.answers", { question: name(target) })}</p>`;
	return html`<div class="target" role="radiogroup" aria-label=${t("page.answers_which")}>
		<span>${t("page.answers_which")}</span>
		${questions.map(
			(question) => html`<button type="button" role="radio" aria-checked=${String(question === target)} onClick=${() => (session.aim(question.question_id), bring(question.question_id, session))}>${name(question)}</button>`,
		)}
	</div>`;
}
