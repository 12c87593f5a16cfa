// Code in colours, by a few rules that hold in most languages. Everything stays text.

import { html, render } from "./vendor/htm-preact.js";
import { Copy } from "./copy.js";
import { visible } from "./words.js";

const WORDS = new Set(
	("abstract and as assert async await bool break case catch class const continue def default del do elif else enum except " +
		"export extends false False final finally fn for from func function global if impl implements import in instanceof int " +
		"interface is lambda let loop match mod module mut new nil None nonlocal not null or package pass private protected pub " +
		"public raise return select self static str string struct super switch then this throw trait true True try type typeof " +
		"undefined union unsafe use using var virtual void where while with yield").split(" "),
);
const HASH = /^(?:py|python|sh|bash|zsh|fish|shell|console|ya?ml|toml|rb|ruby|make|makefile|dockerfile|r|pl|perl|conf|ini|cfg|txt)?$/;
const PIECES =
	/(\/\*[^]*?(?:\*\/|$)|\/\/[^\n]*|<!--[^]*?(?:-->|$))|(#[^\n]*)|("""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|(\b\d[\d_.xa-fA-F]*\b)|([A-Za-z_][\w]*)(\s*\()?/g;
const LONGEST = 60000;

/** Splits code into pieces: [class, text]. */
export function colours(text, language = "") {
	if (text.length > LONGEST || language === "text" || language === "md") return [["", text]];
	const hashes = HASH.test(language);
	const pieces = [];
	let last = 0;
	const put = (kind, at, piece) => {
		if (at > last) pieces.push(["", text.slice(last, at)]);
		pieces.push([kind, piece]);
		last = at + piece.length;
	};
	for (const found of text.matchAll(PIECES)) {
		const [whole, comment, hash, string, number, word, called] = found;
		if (comment && !(comment.startsWith("//") && hashes && language)) put("c", found.index, comment);
		else if (hash && hashes) put("c", found.index, hash);
		else if (string) put("s", found.index, string);
		else if (number) put("n", found.index, number);
		else if (word && WORDS.has(word)) put("k", found.index, word);
		else if (called) put("f", found.index, word);
		else if (whole.length === 0) break;
	}
	if (last < text.length) pieces.push(["", text.slice(last)]);
	return pieces;
}

export const languageOf = (path) => (/\.(\w+)$/.exec(path) ?? ["", ""])[1].toLowerCase();

export const Code = ({ text, language }) =>
	colours(text, language).map(([kind, piece]) => (kind ? html`<span class=${`x-${kind}`}>${piece}</span>` : piece));

/** Shows a line of the model's words; text between backticks is code. */
export const Sentence = ({ text }) =>
	visible(text)
		.split(/(`[^`\n]+`)/)
		.map((piece, place) => (place % 2 ? html`<code>${piece.slice(1, -1)}</code>` : piece));

/** Shows a footnote where it stands in the same answer, without changing the page's address. */
function showNote(event, element, id) {
	event.preventDefault();
	element.querySelector(`[id="${CSS.escape(id)}"]`)?.scrollIntoView({ block: "center" });
}

/** Shows HTML that the server made of Markdown; its code gets colours and a copy button. */
export function dress(element) {
	for (const pre of element.querySelectorAll("pre")) {
		pre.tabIndex = 0;
		const code = pre.querySelector("code");
		if (!code || pre.querySelector(".copy")) continue;
		const { className, textContent: text } = code;
		const language = (/language-([\w+#-]+)/.exec(className) ?? ["", ""])[1];
		pre.replaceChildren();
		render(html`<code class=${className}><${Code} text=${text} language=${language} /></code><${Copy} read=${() => text} />`, pre);
	}
	for (const table of element.querySelectorAll("table")) {
		if (table.parentElement.className === "wide") continue;
		const wide = document.createElement("div");
		wide.className = "wide";
		wide.tabIndex = 0;
		table.replaceWith(wide);
		wide.append(table);
	}
	for (const link of element.querySelectorAll('a[href^="#"]')) {
		link.onclick = (event) => showNote(event, element, link.getAttribute("href").slice(1));
	}
}
