// What can be looked up beside the conversation: changes, vitals, record, the prompt's layers.

import { html, useEffect, useState } from "./vendor/htm-preact.js";
import { Chart } from "./chart.js";
import { Diff, looksLikeDiff } from "./diff.js";
import { Icon } from "./icons.js";
import { subject } from "./plan.js";
import { money, moment, t, thousands, visible } from "./words.js";

const AGAIN_MS = 1500;

/** What the server says under a name; read again some time after something has happened. */
function useReading(session, what) {
  const [data, setData] = useState(null);
  const [problem, setProblem] = useState("");
  const happened = session.last;
  useEffect(() => {
    let wanted = true;
    const read = () =>
      session.read(what).then(
        (found) => wanted && (setData(found), setProblem("")),
        (error) => wanted && setProblem(error.message),
      );
    const timer = setTimeout(read, data ? AGAIN_MS : 0);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [happened, what]);
  return [data, problem];
}

const Reading = ({ problem, data, nothing, children }) =>
  problem ? html`<p class="problem">${visible(problem)}</p>` : data === null ? html`<p class="nothing">…</p>` : nothing ? html`<p class="nothing">${nothing}</p>` : children;

export function Changes({ session, tell }) {
  const [data, problem] = useReading(session, "changes");
  const undo = (again) => session.undo(again).then(({ told }) => told?.length && tell(told.join(" ")), (error) => tell(error.message, "warn"));
  return html`<section aria-labelledby="changes-title"><h2 id="changes-title">${t("web.changes")}</h2>
    ${session.writable
      ? html`<div class="choices"><button onClick=${() => undo(false)}><${Icon} name="undo" />${t("web.undo")}</button><button onClick=${() => undo(true)}>${t("web.redo")}</button></div>`
      : null}
    <${Reading} problem=${problem} data=${data} nothing=${data?.length === 0 ? t("web.no_changes") : ""}>
      <ul class="turns">${[...(data ?? [])].reverse().map((one) => html`<${Turn} key=${one.turn} turn=${one} />`)}</ul>
    <//>
  </section>`;
}

/** What a turn has changed; a file that nobody was asked about has no diff here. */
function Turn({ turn }) {
  const known = new Map(turn.diffs.flatMap((one) => one.impacts).map((one) => [one.path, one]));
  const diff = turn.diffs.map((one) => one.diff).filter(looksLikeDiff).join("\n");
  const paths = turn.files.length ? turn.files : [];
  return html`<li class=${turn.undone ? "undone" : ""}>
    <h3>${t("web.turn", { turn: turn.turn })} ${turn.undone ? html`<span class="badge">${t("web.taken_back")}</span>` : null}</h3>
    <ul class="impacts">${paths.map((path) => {
      const { change, added, removed } = known.get(path) ?? {};
      return html`<li>${change ? html`<span class=${`change c-${change}`}>${t(`gate.${change}`)}</span> ` : null}<code>${visible(path)}</code>
        ${added || removed ? html` <span class="plus">+${added}</span> <span class="minus">−${removed}</span>` : null}</li>`;
    })}</ul>
    ${diff ? html`<details><summary>${t("web.diff")}</summary><${Diff} text=${diff} /></details>` : null}
  </li>`;
}

export function Health({ session }) {
  const [data, problem] = useReading(session, "chart");
  const usage = session.state.usage ?? {};
  const facts = [
    [t("web.calls"), usage.calls],
    [t("web.sent"), thousands(usage.prompt_tokens ?? 0)],
    [t("web.cached"), thousands(usage.cached_tokens ?? 0)],
    [t("web.received"), thousands(usage.completion_tokens ?? 0)],
    [t("web.cost"), money(usage.cost_usd)],
  ].filter(([, value]) => value);
  return html`<section aria-labelledby="health-title"><h2 id="health-title">${t("web.health")}</h2>
    <${Reading} problem=${problem} data=${data}><${Chart} points=${data ?? []} /><//>
    ${facts.length ? html`<dl class="facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>` : null}
  </section>`;
}

const MARKS = { true: "check", false: "cross", null: "ring" };

export function Audit({ session }) {
  const [data, problem] = useReading(session, "audit");
  return html`<section aria-labelledby="audit-title"><h2 id="audit-title">${t("web.audit")}</h2>
    <${Reading} problem=${problem} data=${data} nothing=${data?.length === 0 ? t("audit.nothing") : ""}>
      <ol class="audit">${[...(data ?? [])].reverse().map(
        (one) => html`<li><${Icon} name=${MARKS[String(one.ok ?? null)]} label=${t(one.ok ? "web.ok" : one.ok === false ? "web.failed" : "web.open")} />
          <div><code>${visible(one.operation)}</code> ${visible(subject(one.args)).slice(0, 160)} <span class="meta">${moment(one.at)}</span>
            ${[["why", one.why], ["answer", one.answer], ["came", one.told]].map(([name, text]) => (text ? html`<p class="what">${t(`audit.${name}`)}: ${visible(text)}</p>` : null))}</div></li>`,
      )}</ol>
    <//>
  </section>`;
}

const LAYER = /^(.+?)[:：]\s*([\d,]+)(?:\D+?([\d,]+))?/;

/** The prompt's layers, as `/context` tells them. */
export function Layers({ session }) {
  const [data, problem] = useReading(session, "context");
  const lines = (data?.text ?? "").split("\n").filter(Boolean);
  const count = (text) => Number((text ?? "0").replaceAll(",", ""));
  const layers = lines.map((line) => LAYER.exec(line)).filter(Boolean).map(([, name, tokens, budget]) => ({ name, tokens: count(tokens), budget: count(budget) }));
  const most = Math.max(1, ...layers.map((one) => one.tokens));
  return html`<section aria-labelledby="layers-title"><h2 id="layers-title">${t("web.layers")}</h2>
    <${Reading} problem=${problem} data=${data}>
      <ul class="layers">${layers.map(
        (one) => html`<li><span>${visible(one.name)}</span><span class="meta">${thousands(one.tokens)}${one.budget ? ` / ${thousands(one.budget)}` : ""}</span>
          <meter max=${most} value=${one.tokens} aria-label=${visible(one.name)}>${one.tokens}</meter></li>`,
      )}</ul>
      ${lines.filter((line) => !LAYER.test(line)).map((line) => html`<p class="what">${visible(line)}</p>`)}
    <//>
  </section>`;
}
