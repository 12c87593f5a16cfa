"""The verdict on a shell command: every call in it, and in everything it runs, is compared with the tables of
programs."""

import re
import shlex
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

from duckflow.safety.commands import dangers, services
from duckflow.safety.commands.dangers import DANGERS, judge_by_table
from duckflow.safety.commands.handed_over import (
    DOWNLOADERS,
    INTERPRETERS,
    SHELLS,
    CodeText,
    handed_over,
    judge_assignments,
    judge_origins,
)
from duckflow.safety.commands.parse import OPENS, parse
from duckflow.safety.commands.paths import (
    BROAD,
    NOTHING_KNOWN,
    CommandFacts,
    Scene,
    Target,
    is_secret,
    names_outside,
    target_of,
)
from duckflow.safety.commands.project_tools import project_run, undressed
from duckflow.safety.commands.reader_programs import READERS
from duckflow.safety.commands.reading_doubts import doubt_redirects, doubts, tells_version
from duckflow.safety.commands.verdict import CommandFinding, CommandVerdict, Report, TooMuch, ask, danger
from duckflow.safety.commands.words import WRAPPERS, Behind, Call, Word, look_behind, names, read_options

DASH_AS_OPTION = re.compile(r"(?<=\s)[‐‑‒–—―−﹘﹣－]{1,2}(?=[A-Za-z])")
SPACE_AT_ASCII = re.compile(r"(?<=[!-~])[^\S \t\n\r\f\v]|[^\S \t\n\r\f\v](?=[!-~])")
INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Unicode categories: control and format characters, broken bytes, private and unassigned characters, odd line ends."""
ORDINARY = "\n\t"
ESCAPED = re.compile(r"\\(\r?\n|.)", re.DOTALL)
QUIET = re.compile(r"(?<=\s)(?:[12]?>>?\s*/dev/null|&>\s*/dev/null|2>&1|1>&2|>&2)(?=\s|$|[;|&)])")
OPERATORS = frozenset((";", "|", "||", "&&"))


def made_plain(text: str) -> str:
    """Returns the text as a careless reader, or another shell, would take it: without invisible characters, and with
    plain dashes."""
    if text.isascii() and text.isprintable():
        return text
    if not text.isascii():
        text = DASH_AS_OPTION.sub(lambda dashes: "-" * len(dashes[0]), text)
        text = SPACE_AT_ASCII.sub(" ", text)
    return "".join(
        character for character in text if character in ORDINARY or unicodedata.category(character) not in INVISIBLE
    )


def joined_lines(text: str) -> str:
    """Joins lines that end in a backslash with the next one, except where there are single quotes or comments."""
    if "\\\n" not in text or "#" in text or "'" in text:
        return text
    return ESCAPED.sub(lambda escape: "" if escape[1].endswith("\n") else escape[0], text)


def reads_the_same(text: str, words: list[str]) -> bool:
    """Says whether the standard library's shell lexer sees exactly these words in this text. The grammar that reads
    commands is large and has its mistakes, so a text may be called harmless only if both agree."""
    lexer = shlex.shlex(QUIET.sub(" ", f" {text}"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:
        return False
    sources = {index + 1 for index, token in enumerate(tokens) if token == "<"}
    skipped = OPERATORS | {"<"}
    return words == [token for index, token in enumerate(tokens) if token not in skipped and index not in sources]


LONGEST = 60_000
KEPT_VERDICTS = 128
DEEPEST = 16

Opinion = CommandFinding | Call | CodeText | str
"""The result of a rule: a finding, another call that the command makes, a text found in code, or a text that a shell is
to run."""
Rule = Callable[[Call, Scene], Iterator[CommandFinding]]
RULES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(("rm", "grm", "rmdir", "unlink"), (dangers.judge_rm,)),
    **dict.fromkeys(("mv", "cp", "ln", "install"), (dangers.judge_move,)),
    "rsync": (dangers.judge_move, services.judge_sending),
    **dict.fromkeys(("tee", "touch", "sponge", "dd", "tar"), (dangers.judge_writer,)),
    **dict.fromkeys(("kill", "killall", "pkill"), (dangers.judge_kill,)),
    **dict.fromkeys(("chmod", "chown", "chgrp", "setfacl"), (dangers.judge_rights,)),
    **dict.fromkeys(("scp", "sftp", "ftp", "nc", "ncat", "netcat"), (services.judge_sending,)),
    **dict.fromkeys(("curl", "wget", "http", "https", "xh", "gh"), (services.judge_request,)),
    **dict.fromkeys(("git checkout", "git push", "git"), (services.throws_away,)),
}
"""Functions that judge programs whose dangers a table cannot describe."""
EVERY_PROGRAM: tuple[Rule, ...] = (judge_by_table, services.judge_database, services.judge_sockets)
KNOWN = frozenset(
    (*READERS, *RULES, *DANGERS, *WRAPPERS, *SHELLS, *INTERPRETERS, *services.SERVICES, *services.CLIENTS)
)
ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
DELETERS = names("rm unlink shred mv truncate")
FIND_RUNS = names("-exec -execdir -ok -okdir")
LOOKS = names("status list ls ps show info get logs images search version inspect")
BECOMES = names("-i -s --login --shell")
WHOLE_MACHINE = ("/:/", "--privileged", "/var/run/docker.sock", "--pid=host", "/etc:", "/root:")


@lru_cache(KEPT_VERDICTS)
def judge_command(text: str, facts: CommandFacts = NOTHING_KNOWN) -> CommandVerdict:
    """Judges a command. It is pure: it runs nothing and reads nothing from the disk. A long text takes up to a second,
    so the shell tool first judges it in a thread; later calls get the cached verdict."""
    report = Report()
    if len(text) > LONGEST:
        report.add(ask("too_long"))
    plain_text = made_plain(text[:LONGEST])
    if plain_text != text[:LONGEST]:
        report.add(ask("odd_characters"))
    readable_text = joined_lines(plain_text)
    try:
        spelled_words = _Judge(report, Scene(facts)).judge_text(readable_text)
        if not report.findings and not reads_the_same(readable_text, spelled_words):
            report.add(ask("unreadable"))
    except (TooMuch, RecursionError):
        report.add(danger("too_much"))
    return report.verdict()


class _Judge:
    """Goes through a text call by call, and then, one level deeper, through each of the texts that these calls run."""

    def __init__(self, report: Report, scene: Scene, depth: int = 0) -> None:
        self.report = report
        self.scene = scene
        self.depth = depth

    def judge_text(self, text: str) -> list[str]:
        """Judges a text and returns its words as they were understood."""
        self.report.spend(1 + len(text) // 4 + len(OPENS.findall(text)) ** 2 // 250)
        script = parse(text)
        for doubt in script.doubts:
            self.report.add(doubt)
        for call in script.calls:
            self.judge_call(call)
        return script.spelled

    def judge_call(self, call: Call) -> None:
        self.report.spend(40 + len(call.words) + len(call.piped))
        self.depth += 1
        if self.depth > DEEPEST:
            raise TooMuch
        self.report.leaves |= names_outside(call, self.scene)
        for opinion in self._opinions(call):
            match opinion:
                case str():
                    self.judge_text(opinion)
                case Call():
                    self.judge_call(opinion)
                case CodeText():
                    self._guess(opinion.text)
                case finding:
                    self.report.add(finding)
        self.depth -= 1
        self._take_effect(call)

    def _guess(self, text: str) -> None:
        """Judges a text that was found in code. The text may be a command, but mostly it is not: only a danger of a
        known program counts."""
        guessing_judge = _Judge(Report(work=self.report.work), self.scene, self.depth)
        for call in parse(text).calls:
            if call.program in KNOWN:
                guessing_judge.judge_call(call)
        self._take_dangers(guessing_judge.report)

    def _take_dangers(self, guessed: Report) -> None:
        self.report.spend(guessed.work - self.report.work)
        for finding in guessed.findings:
            if finding.verdict == "dangerous":
                self.report.add(finding)

    def _opinions(self, call: Call) -> Iterator[Opinion]:
        yield from doubt_redirects(call, self.scene)
        for redirect in call.redirects:
            if redirect.writes:
                yield from dangers.judge_written(redirect.target, self.scene)
        if tool_run := project_run(call, self.scene):
            yield tool_run
            return
        call = undressed(call, self.scene)
        yield from judge_assignments(call.assignments)
        if not call.words or tells_version(call):
            return
        if not call.words[0].known:
            yield from self._made_name(call)
        elif call.texts == ("--help",):
            yield ask("unknown_program", program=call.program)
        elif (inner_command := look_behind(call, KNOWN)) is not None:
            yield from self._unwrapped(call, inner_command)
            yield from judge_by_table(call, self.scene)
        else:
            yield from self._program(call)

    def _program(self, call: Call) -> Iterator[Opinion]:
        """Judges a call of a program: it may run other programs, destroy something or only read. Wrappers such as
        `sudo` are judged by `_unwrapped`."""
        if call.program == "git":
            call, git_options = services.as_subcommand(call)
            yield from services.runs_by_git(call, git_options)
            yield from services.doubt_git(call, git_options, self.scene)
        yield from handed_over(call, self.scene)
        if "/" in call.words[0].text and call.words[0].text.rpartition("/")[2] in self.scene.downloaded:
            yield danger("runs_download")
        for rule in (*RULES.get(call.program, ()), *EVERY_PROGRAM):
            yield from rule(call, self.scene)
        if call.program in services.SERVICES or (call.program not in RULES and call.program not in READERS):
            yield from services.judge_service(call, self.scene)
        if call.program in ("find", "gfind"):
            yield from self._found(call)
        if call.program == "alias":
            yield from (text.partition("=")[2] for text in call.texts)
        yield from doubts(call, self.scene)

    def _made_name(self, call: Call) -> Iterator[CommandFinding]:
        """Judges a call of a program whose name is known only at run time."""
        yield ask("program_at_run_time", word=call.words[0].text)
        yield from judge_origins(call.words[0].inside)
        options = read_options(call.arguments)
        if options.has("-r", "-R", "--recursive") and options.has("-f", "--force"):
            for word in options.operands:
                if target_of(word, self.scene) in BROAD:
                    yield danger("deletes_broad", path=word.text)

    def _unwrapped(self, call: Call, behind: Behind) -> Iterator[Opinion]:
        """Judges the command behind a wrapper such as `sudo`. A change that is made as administrator counts as a change
        of the whole machine."""
        inner_call = call.running(behind.words)
        yield ask(behind.doubt, program=call.program)
        yield from handed_over(call, self.scene)
        yield from behind.texts
        if call.program == "env":
            assignments = [word.text.partition("=") for word in call.arguments if ASSIGNMENT.match(word.text)]
            yield from judge_assignments((name, Word(value)) for name, _, value in assignments)
            if not behind.words:
                yield ask("shows_environment")
        if call.program in DANGERS and any(mark in text for text in call.texts for mark in WHOLE_MACHINE):
            yield danger("container_holds_machine")
        if behind.known:
            yield inner_call
        elif behind.words:
            # The first word may be the value of an option, so only dangers count.
            guessing_judge = _Judge(Report(work=self.report.work), self.scene, self.depth)
            guessing_judge.judge_call(inner_call)
            self._take_dangers(guessing_judge.report)
        if behind.doubt == "as_administrator":
            yield from _with_all_rights(call, inner_call)

    def _found(self, call: Call) -> Iterator[CommandFinding | Call]:
        """Judges the program `find`. Its results are known only when it runs, so deleting them is dangerous outside
        temporary folders."""
        texts = call.texts
        first_option = next((index for index, text in enumerate(texts) if text[:1] in ("-", "(", "!")), len(texts))
        start_words = call.arguments[:first_option] or (Word("."),)
        targets = {target_of(word, self.scene) for word in start_words}
        example = f"{start_words[0].text.rstrip('/')}/…"
        for index, text in enumerate(texts):
            if text == "-delete" and texts[index - 1] not in ("-name", "-path") and targets != {Target.TEMPORARY}:
                yield danger("deletes_found", path=start_words[0].text)
            elif text in FIND_RUNS:
                words = call.arguments[index + 1 :]
                yield call.running(tuple(replace(word, text=word.text.replace("{}", example)) for word in words))
                far_targets = targets - {Target.TEMPORARY, Target.INSIDE, Target.HERE}
                if far_targets and words and words[0].text in DELETERS:
                    yield danger("deletes_found", path=start_words[0].text)

    def _take_effect(self, call: Call) -> None:
        """Notes the effects of a call on the calls after it: another current folder, and files that were downloaded."""
        if call.program in ("cd", "pushd", "popd"):
            self.scene.go(next((word for word in call.arguments if not word.text.startswith("-")), None))
        elif call.program in DOWNLOADERS:
            words = (*call.texts, *(redirect.target.text for redirect in call.redirects if redirect.writes))
            self.scene.downloaded.update(text.rpartition("/")[2] for text in words)


def _with_all_rights(call: Call, inner: Call) -> Iterator[CommandFinding]:
    if not inner.words:
        if not BECOMES.isdisjoint(call.texts):
            yield danger("becomes_administrator")
    elif inner.program not in WRAPPERS and inner.program not in SHELLS:
        only_reads = inner.program in READERS and not any(map(is_secret, inner.texts))
        if not only_reads and LOOKS.isdisjoint(inner.texts[:2]):
            yield danger("administrator_changes", program=inner.program)
