"""sed, awk and find: programs that only read as long as their little language says so."""

import re
from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.opinion import Opinion, Runs, RunsText
from duckflow.safety.commands.targets import Target, target_of
from duckflow.safety.commands.text.options import read_options
from duckflow.safety.commands.text.words import Word
from duckflow.safety.commands.verdict import ask, danger

ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/I?)"
SUBSTITUTION = r"s([/|#,:@!])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpiI0-9]*"
SED_COMMAND = re.compile(rf"^\s*(?:{ADDRESS}(?:,(?:{ADDRESS}|\+\d+))?\s*)?!?\s*(?:[pdqnNDPGHhgx=l]|{SUBSTITUTION})\s*$")
SED_OPTIONS = frozenset(("-n", "-E", "-r", "-s", "-u", "-z", "--quiet", "--silent", "--regexp-extended", "--null-data"))
SED_RUNS = re.compile(r"(?:^|[;}\d$/\s])e(?:\s+(.*)|$)|s(\W).*\2.*\2[gpiIm0-9]*e")
SED_WRITES = re.compile(r"(?:^|[;}\d$/\s])[wW]\s+(\S+)|s(\W).*\2.*\2[gpiIm0-9]*w\s*(\S+)")
AWK_ACTS = re.compile(r"system|getline|[|>@]|\bclose\b")
AWK_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
AWK_RUNS = re.compile(r"\bsystem\b|\|")
LONGEST_SCRIPT = 300
MOST_LITERALS = 20
FIND_VALUES = frozenset(
    ("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-type", "-xtype")
    + ("-size", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-newer", "-anewer", "-cnewer", "-user")
    + ("-group", "-uid", "-gid", "-perm", "-maxdepth", "-mindepth", "-printf", "-lname", "-ilname", "-links", "-inum")
    + ("-samefile", "-fstype", "-used", "-regextype", "-context", "-D", "-files0-from")
)
DELETERS = ("rm", "unlink", "shred", "mv", "truncate")
BROADER = frozenset((Target.ROOT, Target.HOME, Target.SYSTEM, Target.OUTSIDE, Target.UNKNOWN))
FIND_RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
FIND_WRITES = frozenset(("-fprint", "-fprint0", "-fprintf", "-fls"))


def judge_sed(call: Invocation) -> Iterator[Opinion]:
    options = read_options(call.arguments, "efl", ("--expression", "--file", "--line-length"))
    scripts = options.values("-e", "--expression") or list(options.operands[:1])
    for option, _ in options.given:
        if option not in SED_OPTIONS:
            yield ask("option_changes", program=call.program, option=option)
    for script in scripts:
        if len(script.text) > LONGEST_SCRIPT:
            yield ask("sed_script")
            continue
        if not script.plain or not all(
            SED_COMMAND.match(part) for part in re.split(r"[;\n]", script.text) if part.strip()
        ):
            yield ask("sed_script")
        for found in SED_RUNS.finditer(script.text):
            yield ask("runs_code", program=call.program)
            if found[1]:
                yield RunsText(found[1])
        if SED_WRITES.search(script.text):
            yield ask("sed_script")


def judge_awk(call: Invocation) -> Iterator[Opinion]:
    options = read_options(call.arguments, "Fv", ("--field-separator", "--assign"))
    for option, _ in options.given:
        if option not in ("-F", "-v", "--field-separator", "--assign"):
            yield ask("option_changes", program=call.program, option=option)
    if not options.operands:
        yield ask("unknown_program", program=call.program)
        return
    program = options.operands[0].text
    harmless = re.sub(r"\|\||[<>=]=", "", program)
    if AWK_ACTS.search(harmless):
        yield ask("runs_code", program=call.program)
    if AWK_RUNS.search(harmless):
        for found in list(AWK_LITERAL.finditer(program))[:MOST_LITERALS]:
            yield RunsText(found[1].replace('\\"', '"'))


def judge_find(call: Invocation) -> Iterator[Opinion]:
    """What is found is known only when it runs, so deleting it is dangerous outside temporary folders."""
    texts = call.texts
    starts = _starting_points(call)
    place = 0
    while place < len(texts):
        text = texts[place]
        place += 1
        if text in FIND_VALUES:
            place += 1
        elif text == "-delete":
            yield ask("option_changes", program=call.program, option=text)
            if not _temporary(starts, call):
                yield danger("deletes_found", path=starts[0].text)
        elif text in FIND_WRITES:
            yield ask("option_changes", program=call.program, option=text)
        elif text in FIND_RUNS:
            end = next((n for n in range(place, len(texts)) if texts[n] in (";", "+")), len(texts))
            yield ask("option_changes", program=call.program, option=text)
            command = tuple(_found(word, starts[0]) for word in call.arguments[place:end])
            yield Runs(command)
            broad = any(target_of(word, call.scene) in BROADER for word in starts)
            if broad and command and command[0].text in DELETERS:
                yield danger("deletes_found", path=starts[0].text)
            place = end + 1


def _starting_points(call: Invocation) -> tuple[Word, ...]:
    words = list[Word]()
    for word in call.arguments:
        if word.text.startswith(("-", "(", "!", ")")):
            if word.text in ("-H", "-L", "-P"):
                continue
            break
        words.append(word)
    return tuple(words) or (Word("."),)


def _temporary(starts: tuple[Word, ...], call: Invocation) -> bool:
    return all(target_of(word, call.scene) is Target.TEMPORARY for word in starts)


def _found(word: Word, start: Word) -> Word:
    """`{}` stands for something below the starting point."""
    if "{}" not in word.text:
        return word
    return Word(word.text.replace("{}", f"{start.text.rstrip('/')}/…"), known=False, plain=False)
