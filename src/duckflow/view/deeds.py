"""Makes the items of actions with their output, and of questions with their answers."""

from collections.abc import Iterable

from duckflow.events.types import ActionFinished, ActionStarted, OutputStreamed, QuestionAsked, QuestionClosed
from duckflow.state.action import Action
from duckflow.state.agent import AgentState
from duckflow.state.question import GateRequest
from duckflow.view.items import ActionItem, AgentItem, Item, OutputItem, QuestionItem

TAIL = 8000


class Workers:
    """The jobs beside the conversation by their names, and which of them are agents."""

    def __init__(self, state: AgentState) -> None:
        self.names = {job.job_id: job.name for job in state.jobs.values()}
        self.agents = {
            agent.agent_id: AgentItem(f"agent-{agent.agent_id}", 0, agent.began, agent.agent_id, agent.kind)
            for agent in state.agents.values()
        }

    def name(self, job: str) -> str:
        return self.names.get(job, job)


class DeedsView:
    """Makes items from the actions and questions that have begun and not ended yet."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._decided: dict[str, Action] = {}
        self._actions: dict[str, ActionItem] = {}
        self._outputs: dict[str, OutputItem] = {}
        self._printed = 0
        self._questions: dict[str, QuestionItem] = {}
        """The open questions by their ids."""

    def decide(self, actions: Iterable[Action]) -> None:
        self._decided = {action.action_id: action for action in actions}

    def ask(self, number: int, event: QuestionAsked, turn: int) -> list[Item]:
        """Returns the actions that wait for a yes, then the question about them. If the question is asked again, only
        its known item is returned."""
        question = event.question
        if known_item := self._questions.get(question.question_id):
            return [known_item]
        question_item = QuestionItem(question.question_id, number, event.at, question, turn=turn)
        self._questions[question_item.id] = question_item
        waiting_actions = (
            self._waiting(question_item, question.gate, question.job) if question.gate and question.on_record else []
        )
        self._actions |= {action.id: action for action in waiting_actions}
        return [*waiting_actions, question_item]

    def _waiting(self, item: QuestionItem, gate: GateRequest, job: str) -> list[ActionItem]:
        diff = gate.file_diff if len(gate.action_ids) == 1 else ""
        return [
            ActionItem(
                action_id,
                item.number,
                item.at,
                operation,
                "asked",
                self._decided.get(action_id),
                job=job,
                job_name=self._workers.name(job),
                by_agent=job in self._workers.agents,
                gate=item.id,
                diff=diff,
                turn=item.turn,
            )
            for action_id, operation in zip(gate.action_ids, gate.operations, strict=True)
        ]

    def close(self, number: int, event: QuestionClosed, turn: int) -> list[Item]:
        """Returns the question with its answer, and the actions that it was about."""
        question_item = self._questions.pop(event.question_id, None)
        question_item = question_item or QuestionItem(event.question_id, number, event.at, None, turn=turn)
        closed_question = question_item._replace(closed=True, answer=event.answer)
        gated_actions = [action for action in self._actions.values() if action.gate == event.question_id]
        answered_actions = [action._replace(answer=event.answer) for action in gated_actions]
        self._actions |= {action.id: action for action in answered_actions}
        return [closed_question, *answered_actions]

    def start(self, number: int, event: ActionStarted, turn: int) -> ActionItem:
        action, job = event.action, event.job
        known_item = self._actions.get(action.action_id)
        item = known_item or ActionItem(action.action_id, number, event.at, action.operation, "running", turn=turn)
        self._actions[item.id] = item = item._replace(
            at=event.at,
            state="running",
            action=action,
            doing=event.doing,
            effect=event.effect,
            step_kind=event.step_kind,
            job=job,
            job_name=self._workers.name(job),
            by_agent=job in self._workers.agents,
        )
        return item

    def print(self, event: OutputStreamed) -> OutputItem:
        job = event.job
        output = self._outputs.get(job)
        if output is None:
            self._printed += 1
            name, by_agent = self._workers.name(job), job in self._workers.agents
            running_ids = [item.id for item in self._actions.values() if item.job == job and item.state == "running"]
            action = running_ids[-1] if running_ids else ""
            output = OutputItem(f"output-{self._printed}", 0, event.at, job, name, by_agent, action)
        output_tail = (output.tail + event.text)[-TAIL:]
        self._outputs[job] = output = output._replace(tail=output_tail, piece=event.text, left_out=event.left_out)
        return output

    def finish(self, number: int, event: ActionFinished, turn: int) -> list[Item]:
        """Returns the action with its result. The item of its output ends, too."""
        result, job = event.result, event.job
        item = self._actions.pop(result.action_id, None) or ActionItem(
            result.action_id,
            number,
            event.at,
            result.operation,
            "running",
            effect=result.effect,
            job=job,
            job_name=self._workers.name(job),
            by_agent=job in self._workers.agents,
            turn=turn,
        )
        return [*self._end_output(job), item._replace(state="done" if result.ok else "failed", result=result)]

    def leave(self, job: str) -> list[Item]:
        """Ends the work of a turn (if `job` is empty) or of a job. Returns its output, the actions it had begun, and
        its questions on record, all marked as ended."""
        actions = [action for action in self._actions.values() if action.job == job]
        questions = [item for item in self._questions.values() if item.question and item.question.job == job]
        # A question that is not on record belongs to a command that the user typed, which goes on.
        recorded_questions = [item for item in questions if item.question and item.question.on_record]
        for action in actions:
            del self._actions[action.id]
        for item in recorded_questions:
            del self._questions[item.id]
        return [
            *self._end_output(job),
            *(action._replace(state="left") for action in actions),
            *(item._replace(closed=True) for item in recorded_questions),
        ]

    def _end_output(self, job: str) -> list[Item]:
        output = self._outputs.pop(job, None)
        return [output._replace(piece="", left_out=0, over=True)] if output else []
