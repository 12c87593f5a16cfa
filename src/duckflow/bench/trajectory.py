"""A session as a trajectory in the Agent Trajectory Interchange Format (ATIF 1.8), for benchmarks and training."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from duckflow import __version__
from duckflow.events.types import (
    ActionFinished,
    ActionStarted,
    Event,
    Intervened,
    MessageAdded,
    ModelChosen,
    QuestionAsked,
    QuestionClosed,
    ReplyRejected,
    SessionOpened,
    ThoughtKept,
    TurnEnded,
    UsageReported,
    VitalsChanged,
)
from duckflow.events.work import AgentEnded, AgentStarted, JobEnded, JobStarted
from duckflow.safety.secrets import redacted
from duckflow.state.data import Phrase
from duckflow.state.message import Message, Usage

SCHEMA = "ATIF-v1.8"
NOTES = "The totals hold what sub-agents and background jobs used as well, as /cost counts it."
NO_STEP = "No reply: what was asked of the model besides its steps."
Step = dict[str, Any]


@dataclass(slots=True)
class Track:
    """The steps of the conversation, or of one agent or job. It also holds the data that is collected for the next
    step."""

    steps: list[Step] = field(default_factory=list[Step])
    usage: Usage = field(default_factory=Usage)
    total: Usage = field(default_factory=Usage)
    thought: str = ""
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    about: dict[str, Any] = field(default_factory=dict[str, Any])
    running: list[str] = field(default_factory=list[str])
    """Ids of the actions that have begun but not ended."""

    def note(self, name: str, value: Any) -> None:
        self.extra.setdefault(name, []).append(value)

    def add(self, source: str, text: str, at: float, **other: Any) -> Step:
        timestamp = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
        step: Step = {
            "step_id": len(self.steps) + 1,
            "timestamp": timestamp,
            "source": source,
            "message": redacted(text),
        }
        extra_fields, self.extra = self.extra, {}
        self.steps.append(step | other | ({"extra": extra_fields} if extra_fields else {}))
        return self.steps[-1]

    def metrics(self) -> dict[str, Any]:
        """Returns the usage since the last step of the model, and the number of requests."""
        usage, self.usage = self.usage, Usage()
        if not usage.calls:
            return {}
        figures = usage.model_dump(include={"prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd"})
        return {"metrics": figures, "llm_call_count": usage.calls}


class Trajectories:
    """Makes trajectories from a session's events, which must come in their order."""

    def __init__(self) -> None:
        self._tracks: dict[str, Track] = {"": Track()}
        self._session = ""
        self._model = ""
        self._vitals: dict[str, float] = {}
        self._questions: dict[str, dict[str, Any]] = {}

    def hear_all(self, events: Iterable[tuple[int, Event]]) -> "Trajectories":
        for _, event in events:
            self._hear(event)
        return self

    def document(self) -> dict[str, Any]:
        main_track = self._tracks.pop("")
        total_usage = main_track.total
        for track in self._tracks.values():
            total_usage = total_usage.plus(track.total)
        trajectory = self._trajectory(main_track, total_usage) | {"notes": NOTES}
        sub_trajectories = [
            self._trajectory(track, track.total, name) for name, track in self._tracks.items() if track.steps
        ]
        return trajectory | ({"subagent_trajectories": sub_trajectories} if sub_trajectories else {})

    def _trajectory(self, track: Track, total: Usage, name: str = "") -> dict[str, Any]:
        if track.usage.calls:
            track.add("agent", NO_STEP, self._last_time(track), **track.metrics())
        final_metrics = {
            "total_prompt_tokens": total.prompt_tokens,
            "total_completion_tokens": total.completion_tokens,
            "total_cached_tokens": total.cached_tokens,
            "total_cost_usd": total.cost_usd,
            "total_steps": len(track.steps),
            "extra": {"requests": total.calls},
        }
        agent = {"name": "duckflow", "version": __version__} | ({"model_name": self._model} if self._model else {})
        trajectory: dict[str, Any] = {"schema_version": SCHEMA, "session_id": self._session, "agent": agent}
        trajectory |= {"trajectory_id": name or self._session, "steps": track.steps, "final_metrics": final_metrics}
        return trajectory | ({"extra": track.about} if track.about else {})

    def _last_time(self, track: Track) -> float:
        return datetime.fromisoformat(track.steps[-1]["timestamp"]).timestamp() if track.steps else 0.0

    def _hear(self, event: Event) -> None:
        main_track = self._tracks[""]
        match event:
            case SessionOpened():
                self._session = event.session_id
                main_track.about = {"folder": event.folder, "language": event.language}
            case ModelChosen():
                self._model = event.model
            case UsageReported():
                track = self._track(event.job)
                track.usage, track.total = track.usage.plus(event.usage), track.total.plus(event.usage)
            case ThoughtKept():
                main_track.thought = event.text
            case VitalsChanged():
                self._vitals = event.vitals.model_dump()
            case Intervened():
                main_track.note(
                    "interventions", {"how": event.how, "severity": event.severity, "what": _keys(event.what)}
                )
            case ReplyRejected():
                main_track.note("rejected", {"reason": redacted(event.reason), "attempt": event.attempt})
            case QuestionAsked():
                self._ask(event)
            case QuestionClosed() if question_entry := self._questions.pop(event.question_id, None):
                question_entry["answer"] = event.answer.choice if event.answer else ""
            case TurnEnded():
                main_track.about.setdefault("turns", []).append({"turn": event.turn, "outcome": event.outcome})
            case MessageAdded():
                self._say(event.message)
            case ActionStarted():
                self._track(event.job).running.append(event.action.action_id)
            case ActionFinished():
                _end(self._track(event.job), event)
            case AgentStarted():
                task_fields = {"kind": event.agent.kind, "task": redacted(event.agent.task)}
                self._refer(event.agent.agent_id, task_fields, event.at)
            case JobStarted():
                self._refer(event.job.job_id, {"kind": "job", "task": redacted(event.job.name)}, event.at)
            case AgentEnded():
                self._track(event.agent_id).about["status"] = event.status
            case JobEnded():
                self._track(event.job_id).about["status"] = event.status
            case _:
                pass

    def _track(self, job: str) -> Track:
        return self._tracks.setdefault(job, Track())

    def _ask(self, event: QuestionAsked) -> None:
        question = event.question
        question_entry: dict[str, Any] = {"kind": question.kind, "about": question.title.key}
        self._questions[question.question_id] = question_entry
        self._track(question.job).note("questions", question_entry)

    def _say(self, message: Message) -> None:
        track = self._track(message.job)
        match message.role:
            case "assistant":
                self._reply(track, message)
            case "tool":
                step = next(
                    (earlier_step for earlier_step in reversed(track.steps) if earlier_step["source"] == "agent"), None
                )
                if step is None or message.answers not in _calls(step):
                    # No step of the model asked for this result: it is material that Duckflow added by itself.
                    track.add("system", message.text, message.at)
                    return
                results = step.setdefault("observation", {"results": []})["results"]
                known_result = next(
                    (result for result in results if result.get("source_call_id") == message.answers), None
                )
                if known_result is None:
                    results.append({"source_call_id": message.answers, "content": redacted(message.text)})
                else:
                    known_result["content"] = redacted(message.text)
            case _:
                track.add(message.role, message.text, message.at)

    def _reply(self, track: Track, message: Message) -> None:
        actions = message.decision.actions if message.decision else []
        calls = [
            {
                "tool_call_id": action.action_id,
                "function_name": action.operation,
                "arguments": mapped(action.args, redacted),
            }
            for action in actions
        ]
        fields: dict[str, Any] = track.metrics()
        fields |= {"tool_calls": calls} if calls else {}
        if track.thought:
            fields["reasoning_content"], track.thought = redacted(track.thought), ""
        if self._vitals:
            track.extra["vitals"] = self._vitals
        if message.decision and message.decision.rationale:
            track.extra["rationale"] = redacted(message.decision.rationale)
        track.add("agent", message.text, message.at, **fields, **({"model_name": self._model} if self._model else {}))

    def _refer(self, name: str, about: dict[str, Any], at: float) -> None:
        main_track, track = self._tracks[""], self._track(name)
        track.about |= about
        reference = [{"trajectory_id": name}]
        step = next(
            (earlier_step for earlier_step in reversed(main_track.steps) if earlier_step["source"] == "agent"), None
        )
        caller = next(
            (action_id for action_id in reversed(main_track.running) if step and action_id in _calls(step)), ""
        )
        if step is None or not caller:
            notice = main_track.add("system", f"{name} begins.", at)
            notice["observation"] = {"results": [{"subagent_trajectory_ref": reference}]}
            return
        results = step.setdefault("observation", {"results": []})["results"]
        results.append({"source_call_id": caller, "content": "", "subagent_trajectory_ref": reference})


def _end(track: Track, event: ActionFinished) -> None:
    name = event.result.action_id
    if name in track.running:
        track.running.remove(name)
    step = next((earlier_step for earlier_step in reversed(track.steps) if name in _calls(earlier_step)), None)
    if step is None:
        return
    [call] = [tool_call for tool_call in step["tool_calls"] if tool_call["tool_call_id"] == name]
    call["extra"] = {"ok": event.result.ok, "seconds": event.result.seconds}
    results = step.setdefault("observation", {"results": []})["results"]
    if event.result.for_model and not any(result_fields.get("source_call_id") == name for result_fields in results):
        results.append({"source_call_id": name, "content": redacted(event.result.for_model)})


def _calls(step: Step) -> list[str]:
    return [call["tool_call_id"] for call in step.get("tool_calls", ())]


def _keys(phrases: Iterable[Phrase]) -> list[str]:
    return [phrase.key for phrase in phrases]


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Returns arguments with every text in them changed by `change`, at any depth."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: mapped(part, change) for name, part in cast("dict[str, Any]", value).items()}
    return [mapped(part, change) for part in cast("list[Any]", value)] if isinstance(value, list) else value


def trajectory_text(events: Iterable[tuple[int, Event]]) -> str:
    return json.dumps(Trajectories().hear_all(events).document(), ensure_ascii=False, indent=1) + "\n"
