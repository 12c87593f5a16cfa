// The fleet: what its attempts ask, in one inbox, and how far its tasks are.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { Icon, Spinner } from "./icons.js";
import { Card } from "./question.js";
import { get, post } from "./wire.js";
import { duration, money, moment, t, thousands, visible } from "./words.js";

const AGAIN_MS = 3000;
const SIGNS = { done: "check", merged: "check", failed: "cross", cancelled: "cross", budget: "warn", choose: "gate", queued: "ring", waiting: "ring" };

export function Fleet({ tell }) {
  const [data, setData] = useState(null);
  const [problem, setProblem] = useState("");
  const read = useRef(() => {});
  read.current = () =>
    get("api/fleet").then(
      (found) => (setData(found), setProblem("")),
      (error) => setProblem(error.status ? error.message : t("page.lost")),
    );
  useEffect(() => {
    read.current();
    const timer = setInterval(() => document.hidden || read.current(), AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  const asked = data?.asked ?? [];
  useEffect(() => {
    document.title = `${asked.length ? "● " : ""}${t("page.fleet")} · Duckflow`;
  }, [asked.length]);
  // Of those that ask the same one is shown, and says how many wait behind it.
  const shown = asked.filter((one, place) => !one.same || asked.findIndex((other) => other.same === one.same) === place);
  return html`<main class="page fleet" id="main" tabindex="-1">
    <h1>${t("page.fleet")}</h1>
    ${problem ? html`<p class="problem" role="status">${visible(problem)}</p>` : null}
    <section aria-labelledby="inbox"><h2 id="inbox">${t("page.inbox")} ${asked.length ? html`<span class="count">${asked.length}</span>` : null}</h2>
      ${data && !asked.length ? html`<p class="nothing">${t("page.inbox_empty")}</p>` : null}
      ${shown.map((one, place) => html`<${Asked} key=${one.asked_id} asked=${one} same=${one.same ? asked.filter((other) => other.same === one.same).length - 1 : 0} first=${place === 0} read=${read} tell=${tell} />`)}
    </section>
    ${(data?.fleets ?? []).map((fleet) => html`<${FleetTasks} key=${fleet.fleet} fleet=${fleet} />`)}
    ${data && !data.fleets.length ? html`<p class="nothing">${t("page.no_fleet")}</p>` : null}
  </main>`;
}

function Asked({ asked, same, first, read, tell }) {
  const [all, setAll] = useState(false);
  const { question, task, attempt } = asked;
  const desk = {
    writable: true,
    answer: async (_, answer) => {
      const taken = await post("api/fleet/answer", { asked: asked.asked_id, for_all_same: all, ...answer });
      read.current();
      return { told: taken.taken === "closed" ? [t("question.elsewhere")] : [], ...taken };
    },
  };
  return html`<div class="asked">
    <p class="whose"><b>${visible(task)}</b> <span class="meta">${t("page.attempt", { number: attempt })}</span></p>
    ${same ? html`<label class="all"><input type="checkbox" checked=${all} onChange=${(event) => setAll(event.target.checked)} />${t("page.all_same", { count: same })}</label>` : null}
    <${Card} question=${question} session=${desk} first=${first} alone=${true} tell=${tell} />
  </div>`;
}

const Sign = ({ state }) => (state === "running" ? html`<${Spinner} label=${t("fleet.state.running")} />` : html`<${Icon} name=${SIGNS[state] ?? "ring"} label=${t(`fleet.state.${state}`)} />`);

const FleetTasks = ({ fleet }) => html`<section aria-label=${fleet.fleet}>
  <h2>${visible(fleet.fleet)}</h2>
  <p class="meta">${moment(fleet.started)} · ${t("page.tokens", { tokens: thousands(fleet.tokens) })}${fleet.cost_usd ? ` · ${money(fleet.cost_usd)}` : ""}${fleet.budget_usd ? ` / ${money(fleet.budget_usd)}` : ""}</p>
  <ul class="tasks-of">${fleet.tasks.map(
    (task) => html`<li class="job"><div class="job-head"><${Sign} state=${task.state} /><b>${visible(task.name)}</b> <span class=${`badge b-${task.state}`}>${t(`fleet.state.${task.state}`)}</span></div>
      <p class="what">${visible(task.prompt).slice(0, 300)}</p>
      <ul class="tasks">${task.attempts.map((one) => html`<${Attempt} one=${one} picked=${task.picked === one.number} />`)}</ul></li>`,
  )}</ul>
</section>`;

function Attempt({ one, picked }) {
  const { report } = one;
  const seconds = one.started ? (one.ended || Date.now() / 1000) - one.started : 0;
  const facts = [
    seconds ? duration(seconds) : "",
    one.cost_usd ? money(one.cost_usd) : "",
    report?.files?.length ? `+${sum(report.files, "added")} −${sum(report.files, "removed")}` : "",
    ...(report?.checks ?? []).map((check) => `${check.code ? "✗" : "✓"} ${check.command}`),
    one.state === "running" ? one.doing : "",
  ].filter(Boolean);
  return html`<li><${Sign} state=${one.state} />${t("page.attempt", { number: one.number })} ${t(`fleet.state.${one.state}`)}
    ${one.open_questions ? html` <span class="badge b-waits">${t("job.status.waits")}</span>` : null}${picked ? html` <span class="badge b-running">${t("page.picked")}</span>` : null}
    <span class="meta"> ${visible(facts.join(" · "))}</span>
    ${report?.open ? html`<p class="what warn">${visible(report.open)}</p>` : null}
    ${report?.session_id ? html` <a href=${`#/s/${encodeURIComponent(report.session_id)}`}>${t("page.its_session")}</a>` : null}</li>`;
}

const sum = (files, name) => files.reduce((total, file) => total + (file[name] ?? 0), 0);
