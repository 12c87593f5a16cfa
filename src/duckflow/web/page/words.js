// Words for people. All of them come from the server, in the user's language.

let catalogue = {};
let language = "en";

export function setWords(words, chosen) {
	catalogue = words;
	language = chosen;
	document.documentElement.lang = chosen;
}

export const spoken = () => language;

export function t(key, values = {}) {
	const text = catalogue[key] ?? key;
	return text.replace(/\{(\w+)(?::(?:([^|}]*)\|)?([^}]*))?\}/g, (whole, name, one = "", more) => {
		if (!(name in values)) return whole;
		const value = String(values[name]);
		return more === undefined ? value : value === "1" ? one : more;
	});
}

export const thousands = (count) =>
	count < 1000 ? String(count) : count < 1e6 ? `${(count / 1000).toFixed(count < 10000 ? 1 : 0)}k` : `${(count / 1e6).toFixed(1)}M`;

export const money = (usd) => (usd ? `$${usd < 0.01 ? usd.toFixed(4) : usd.toFixed(2)}` : "");

export const percent = (part) => `${Math.round(part * 100)}%`;

export function duration(seconds) {
	const whole = Math.max(0, Math.floor(seconds));
	if (whole < 60) return `${whole}s`;
	if (whole < 3600) return `${Math.floor(whole / 60)}m${String(whole % 60).padStart(2, "0")}s`;
	return `${Math.floor(whole / 3600)}h${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")}m`;
}

export const clock = (at) => new Date(at * 1000).toLocaleTimeString(language, { hour: "2-digit", minute: "2-digit" });

export const moment = (at) =>
	new Date(at * 1000).toLocaleString(language, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];

/** Returns how long ago something was, in words. */
export function ago(seconds) {
	const [unit, length] = UNITS.find(([, size]) => seconds >= size) ?? ["minute", 60];
	if (seconds < 60) return t("page.just_now");
	return new Intl.RelativeTimeFormat(language, { numeric: "always", style: "short" }).format(-Math.floor(seconds / length), unit);
}

const UNSEEN = /(?![\n\t]|(?<=\P{ASCII})[\u200d\ufe0f])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{DI}]/gu;

/** Marks beyond a few above or below one letter: they would cover the lines around. */
const STACKED = /(?<=[\p{Mn}\p{Me}]{3})[\p{Mn}\p{Me}]+/gu;

/** Shows the code points of characters that are invisible or turn text around. */
export const visible = (text) =>
	String(text ?? "").replace(STACKED, (marks) => `⟨+${marks.length}⟩`).replace(UNSEEN, (sign) => `⟨${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

const ESCAPES = /\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-_]/g;

/** Returns text as a terminal shows it: without colours, of a line drawn over only the last state. */
export const printed = (text) =>
	visible(
		String(text ?? "")
			.replace(ESCAPES, "")
			.replaceAll("\r\n", "\n")
			.replace(/[^\n]*\r(?!\n|$)/g, "")
			.replaceAll("\r", ""),
	);
