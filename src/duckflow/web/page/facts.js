// Lists that follow the server: it sends what has changed, and the page never asks.

import { useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { Stream } from "./requests.js";
import { t } from "./words.js";

/** Returns the latest facts (`now`: the server's time), the problem, and a function that reads all again. Without an address it does nothing. */
export function useFacts(address, lock) {
	const [facts, setFacts] = useState(null);
	const [problem, setProblem] = useState("");
	const stream = useRef(null);
	useEffect(() => {
		if (!address) return undefined;
		const hear = (messages) =>
			setFacts((known) => messages.reduce((before, { facts: changed, now }) => ({ ...before, ...changed, now, at: performance.now() }), known));
		const tell = (how, error) => {
			if (how === "refused" && error.status === 401) lock();
			setProblem({ open: "", refused: error?.message, gone: t("page.gone") }[how] ?? t("page.lost"));
		};
		stream.current = new Stream(() => address, 0, hear, tell);
		stream.current.start();
		return () => stream.current.close();
	}, [address]);
	return [facts, problem, () => stream.current.open()];
}

/** Draws again after each interval, so that ages and durations go on. */
export function useTick(milliseconds, on = true) {
	const [, tick] = useState(0);
	useEffect(() => {
		if (!on) return undefined;
		const timer = setInterval(() => tick((count) => count + 1), milliseconds);
		return () => clearInterval(timer);
	}, [on]);
}
