"""`/agents`, `/skills`, `/hooks`, and the commands that users bring: a skill or a custom command by its name."""

from collections.abc import Iterable, Iterator
from functools import partial

from duckflow.agent.extensions import Extensions, GatedShell
from duckflow.agent.hooks import Hooks
from duckflow.commands.command import Command, CommandContext, Group
from duckflow.errors import DuckflowError
from duckflow.events.views import Attachment
from duckflow.extensions.agent_kinds import PACKAGED, AgentKind
from duckflow.extensions.custom_commands import CustomCommand, commands_in, fill_in, put_outputs
from duckflow.extensions.skills import Skill
from duckflow.i18n.words import Words, grouped
from duckflow.state.agent import AgentState, SubAgent
from duckflow.state.data import quote, shorten
from duckflow.state.mode import STRICTEST_FIRST, Mode
from duckflow.state.progress import duration

SHOWN = 48
DESCRIBED = 90


def agent_lines(state: AgentState, kinds: Iterable[AgentKind], words: Words) -> list[str]:
    """Returns one line for each agent, below it a line about its work, and then the kinds of agents."""
    lines: list[str] = []
    for agent in state.agents.values():
        lines.append(_line(agent, words))
        if agent.doing:
            lines.append(f"  {agent.doing}")
    lines = lines or [words("agent.none")]
    lines.append(words("agent.kinds", kinds=", ".join(PACKAGED)))
    for kind in kinds:
        owner = words("agent.kind_own" if kind.own else "agent.kind_project")
        lines.append(f"  {kind.name} ({owner}) {shorten(kind.description, DESCRIBED)}")
    return lines


def report_lines(state: AgentState, agent_id: str, words: Words) -> list[str]:
    """Returns the whole report of one agent."""
    agent = state.agents.get(agent_id)
    if agent is None:
        return [words("agent.none_such", agent=agent_id)]
    lines, report = [_line(agent, words), words("agent.asked", text=agent.task)], agent.report
    if report is None:
        return [*lines, *([f"  {agent.doing}"] if agent.doing else [])]
    values = {"changed": ", ".join(report.changed), "evidence": "; ".join(report.evidence)}
    values["open"] = words.phrase(report.open) if report.open else ""
    lines += [words(f"agent.{name}", text=text) for name, text in values.items() if text]
    return [*lines, words("agent.found"), report.found] if report.found else lines


def _line(agent: SubAgent, words: Words) -> str:
    usage = agent.usage
    return words(
        "agent.line",
        agent=agent.agent_id,
        status=words("agent.status.waits" if agent.question else f"agent.status.{agent.status}"),
        elapsed=duration(agent.took()),
        calls=usage.calls,
        tokens=grouped(usage.prompt_tokens + usage.completion_tokens, words),
        cost=f", ${usage.cost_usd:.4f}" if usage.cost_usd else "",
        task=shorten(agent.task, SHOWN),
    )


HELP = 90
AGENT_WORDS = ("stop", "tell")


class ExtensionCommands:
    """A source of commands, and the commands that list agents, skills and hooks."""

    def __init__(self, extensions: Extensions, shell: GatedShell, hooks: Hooks) -> None:
        self._extensions = extensions
        self._shell = shell
        self._hooks = hooks

    def group(self) -> Group:
        list_commands = (("agents", self._list_agents), ("skills", self._list_skills), ("hooks", self._list_hooks))
        return tuple(
            Command(name, list_items, AGENT_WORDS if name == "agents" else ()) for name, list_items in list_commands
        )

    def commands(self) -> Iterator[Command]:
        """Yields the commands. A custom command takes precedence over a skill of the same name."""
        extensions = self._extensions.found()
        for skill in extensions.skills:
            if skill.typed:
                description = quote(shorten(skill.description, HELP))
                yield Command(skill.name, partial(self._use_skill, skill), own_help=description)
        for command in extensions.commands:
            text = f"{command.hint} · {command.description}" if command.hint else command.description
            description = quote(shorten(text, HELP))
            yield Command(command.name, partial(self._run_custom, command), own_help=description)

    async def look(self) -> None:
        await self._extensions.look()

    async def _list_agents(self, context: CommandContext, wanted: str) -> str:
        state, words = context.conversation.state, context.words
        verb, _, arguments = wanted.partition(" ")
        agent_id, _, text = arguments.strip().partition(" ")
        if verb == "stop":
            await context.conversation.work.stop_agent(agent_id)
            return ""
        if verb == "tell":
            await context.conversation.work.tell_agent(agent_id, text)
            return ""
        if wanted:
            return "\n".join(report_lines(state, wanted, words))
        return "\n".join(agent_lines(state, self._extensions.found().kinds, words))

    async def _list_skills(self, context: CommandContext, _: str) -> str:
        await self.look()
        words, lines = context.words, list[str]()
        for skill in self._extensions.found().skills:
            owner = words("skill.own" if skill.own else "skill.project")
            lines.append(f"/{skill.name} ({owner}) {shorten(skill.description, HELP)}")
            lines += [f"  ⚠ {words.phrase(warning)}" for warning in skill.warnings]
        return "\n".join(lines) or words("skill.none")

    async def _list_hooks(self, context: CommandContext, wanted: str) -> str:
        """Lists every hook with its whole command, and problems with hooks. A number in `wanted` first changes the
        rights of that hook, if the folder brought it; `forget` withdraws every yes instead."""
        words, (hooks, problems) = context.words, self._hooks.standing()
        programs = self._hooks.consent.programs
        if wanted.strip() == "forget":
            return words("hook.forgotten", count=programs.agreements.withdraw())
        hook_index = int(wanted) - 1 if wanted.strip().isdecimal() else -1
        if wanted.strip():
            if not 0 <= hook_index < len(hooks) or not hooks[hook_index].hook.brought:
                return words("hook.rights_usage")
            await programs.change_rights(hooks[hook_index].hook.program)
        lines: list[str] = []
        for number, (hook, state) in enumerate(hooks, 1):
            matcher = f" {hook.matcher}" if hook.matcher else ""
            lines.append(f"{number}. {hook.event}{matcher} ({words(f'hook.state.{state}')}): {hook.shown}")
            lines += [f"  {hook.source}"] if hook.source else []
            agreement = programs.agreements.find(hook.program) if hook.brought else None
            lines += [f"  {words(f'brought.has.{right}')}" for right in (agreement.rights if agreement else ())]
        return "\n".join([*lines, *(f"⚠ {words.phrase(problem)}" for problem in problems)]) or words("hook.none")

    async def _use_skill(self, skill: Skill, context: CommandContext, typed: str) -> str:
        words = context.words
        wish = words("skill.wish_for", name=skill.name, wish=typed) if typed else words("skill.wish", name=skill.name)
        text = self._extensions.tool.text_of(skill)
        await self._extensions.allowed.grant(skill.name, skill.allowed)
        try:
            await context.conversation.say(wish, [Attachment(f"skill {skill.name}", text)])
        finally:
            self._extensions.allowed.withdraw()
        return ""

    async def _run_custom(self, command: CustomCommand, context: CommandContext, typed: str) -> str:
        """Sends the command's text as if the user had typed it. The command's model and mode are used for this one
        turn. Only the words typed after its name count as the user's own wish."""
        words, text = context.words, fill_in(command.body, typed)
        reason = words("custom.why", name=command.name)
        await self._extensions.allowed.grant(command.name, command.allowed)
        outputs = {
            shell_command: await self._shell.output_of(shell_command, reason) for shell_command in commands_in(text)
        }
        choices, notes = context.conversation.choices, list[str]()
        model, mode = context.conversation.state.model, choices.mode
        if command.mode and not self._change_mode(command, context):
            notes.append(words("custom.mode", name=command.name, mode=command.mode))
        mode_meanwhile = choices.mode
        try:
            if command.model and not command.own and not model:
                notes.append(words("custom.model", name=command.name, model=command.model))
            elif command.model:
                notes += await _change_model(command, context)
            await context.conversation.say(put_outputs(text, outputs), wish=typed)
        finally:
            self._extensions.allowed.withdraw()
            if choices.mode == mode_meanwhile != mode:
                choices.change_mode(mode)
            if command.model and model and context.conversation.state.model != model:
                await choices.change_model(model)
        return "\n".join(notes)

    def _change_mode(self, command: CustomCommand, context: CommandContext) -> bool:
        """Changes the mode. A command that comes with the folder may make the mode stricter, but never looser."""
        choices = context.conversation.choices
        if command.mode not in STRICTEST_FIRST:
            return False
        is_looser = STRICTEST_FIRST.index(Mode(command.mode)) > STRICTEST_FIRST.index(Mode(choices.mode))
        if is_looser and not command.own:
            return False
        choices.change_mode(command.mode)
        return True


async def _change_model(command: CustomCommand, context: CommandContext) -> list[str]:
    """Changes the model. A command that comes with the folder may only choose another model of the same provider: it
    must not decide to whom prompts are sent."""
    words, state, choices = context.words, context.conversation.state, context.conversation.choices
    model_before = state.model
    try:
        await choices.change_model(command.model)
        if command.own or state.model.partition(":")[0] == model_before.partition(":")[0]:
            return []
        await choices.change_model(model_before)
    except DuckflowError as problem:
        return [words.error(problem), words("model.stays", model=model_before or "–")]
    return [words("custom.model", name=command.name, model=command.model)]
