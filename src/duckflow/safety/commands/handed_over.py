"""Finds texts that a call passes to shells and interpreters: as an argument, by a pipe, in an option, by download."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import NamedTuple

from duckflow.safety.commands.parse import parse
from duckflow.safety.commands.paths import Scene
from duckflow.safety.commands.reader_programs import GIT_READERS, READERS
from duckflow.safety.commands.verdict import CommandFinding, TooMuch, ask, danger
from duckflow.safety.commands.words import WRAPPERS, Call, Word, joined, names

SHELLS = names("sh bash zsh dash ksh mksh ash fish csh tcsh rbash yash elvish eval source . trap at batch")
AWKS = names("awk gawk mawk nawk")
INTERPRETERS = AWKS | names(
    "python pypy ipython pwsh powershell expect guile vim vi nvim ex ruby jruby lua luajit osascript rscript r elixir"
    " groovy scala ghc ocaml node nodejs bun perl julia deno tclsh emacs ed gdb m4 php swipl"
)
STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
DECODERS = names("base64 base32 basenc xxd openssl uudecode gunzip zcat gzip bunzip2 xz unxz zstd rev tr gpg od iconv")
DOWNLOADERS = names("curl wget aria2c fetch http https axel lynx ftp sftp scp")
SHELL_VALUES = ("--rcfile", "--init-file", "-O", "-o", "+O", "+o")
RUNS_BY_OPTION = re.compile(
    r"^--?(?:\w+-)*(?:exec|exec-batch|command|cmd|filter|rsh|pre|pager|bin|program|eval|args|wrapper|action|pack|run)"
    r"(?:=((?s:.*)))?$"
)
RUNS_BY_LETTER = re.compile(
    r"^(?:(?:script|runuser|flock|su|nix) -\w*?c|fd(?:find)? -\w*?[xX]|rsync -\w*?e|tar -\w*?[IF]|man -\w*?[PH]"
    r"|ansible -a|screen -X|git rebase -x|git clone -u|(?:kubectl|oc) --$)(.*)$"
)
"""Matches programs with an option that makes them run a command, which is attached to the option or follows it."""
INSIDE_WORDS = re.compile(r"(?:(?:Proxy|Local)Command[= ]+|(?:\\!|\.shell|\.system) *|^ext::)(.+)$", re.M)
"""Matches commands in the settings of ssh, in the small languages of database clients, and in addresses of git."""
CODE_OPTION = re.compile(r"-\w*[cempr]|--(?:eval|exec|command|print)")
"""Options of shells and interpreters that are followed by code, or by the name of a module."""
LOOKS_LIKE_CODE = re.compile(r"[\s(){};'\"`!]")
CODE_DESTROYS = re.compile(
    r"\b(?:rmtree|rm_rf|rm_r|remove_tree|remove_dir_all|remove_entry\w*|rimraf|RemoveAll|Remove-Item|file\s+delete)\b"
    r"|\b(?:fs|fsp|promises|fsPromises)\b.{0,40}?\.(?:rm|rmdir|unlink)\w*\s*\(|\b(?:rm|rmdir|unlink)Sync\s*\("
    r"|\bos\.(?:remove|unlink|rmdir|removedirs|truncate)\b|\.(?:unlink|rmdir)\s*\(|\b(?:unlink|rmdir)\b\s*[(\"'$<]"
    r"|\b(?:File|Dir)\.(?:delete|unlink|rmdir)\b|\bFileUtils\.r\w*|\bunlink\s+glob|\bdelete\s+every\b"
)
CODE_RUNS = re.compile(
    r"\b(?:os\.(?:exec|spawn|posix_spawn)\w*|system|popen\d?|subprocess|getoutput|child_process|spawn\w*|exec\w*|qx"
    r"|shell_exec|passthru|proc_open|Kernel|Open3|do shell script|Runtime|Command|getattr|importlib)\b"
    r"|__import__|`|%x|:!|Bun\.\$|(?<!\|)\|(?!\|)"
)
CODE_CONNECTS = re.compile(r"socket|fsockopen|net\.connect|/dev/tcp|\$_ENV|INET", re.IGNORECASE)
CODE_TAKES_OVER = re.compile(r"dup2|pty\.spawn|/bin/(?:ba)?sh|exec|STDIN", re.IGNORECASE)
CODE_DECODES = re.compile(r"b64decode|base64|hex|decode64|atob|Buffer\.from|decompress|codecs\.decode|rot_?13")
CODE_DOWNLOADS = re.compile(r"urlopen|urllib|requests\.get|http\.get|fetch\(|Net::HTTP|open-uri|get_contents\(.http")
CODE_EVALUATES = re.compile(r"\b(?:eval|exec|compile|system|popen)\b|\bFunction\s*\(")
OPENING_MARK = re.compile(r"'''|\"\"\"|'|\"|`|%x\{|qx[({/|]")
CLOSING_MARKS = {"(": ")", "{": "}"}
LINE_OF_TEXT = {mark: re.compile(rf"[^{mark}\\\n]*(?:\\.[^{mark}\\\n]*)*", re.DOTALL) for mark in "'\""}
"""Matches the text that may stand between two quotes on a line."""
RUN_WITH = re.compile(
    r"\b(?:system|popen\d?|run|call|check_(?:call|output)|get(?:status)?output|exec\w*|spawn\w*|shell_exec|passthru"
    r"|proc_open|capture\w*|new|Command)\s*[\[(\s]\s*[\[(]?([^\[\]()]*)",
    re.IGNORECASE,
)
"""Matches the arguments of a function that runs programs: one text, or a list of words."""
EDITOR_RUNS = re.compile(r":!\s*(.+)$", re.MULTILINE)
MOST_LITERALS = 20
SED_RUNS = re.compile(r"(?:^|[;}\d$/\s])e\s+(.*)")
CHANGES_WHAT_RUNS = re.compile(
    r"^(?:PATH|LD_\w+|DYLD_\w+|IFS|ENV|BASH\w*|SHELL\w*|PS4|PROMPT_COMMAND|CDPATH|GIT_\w+|\w*PAGER|LESS\w*|\w*EDITOR"
    r"|VISUAL|BROWSER|PYTHON\w+|PERL\w+|RUBY\w+|NODE_\w+|\w*JAVA_\w*OPTIONS|CLASSPATH|GCONV_PATH|TERMINFO|HOME|TMPDIR"
    r"|RUSTC\w*|CC|CXX|\w+FLAGS|npm_config_\w+|PIP_\w+|UV_\w+|RIPGREP_\w+|TAR_OPTIONS|\w+_ASKPASS|XDG_CONFIG_\w+)$"
)


class CodeText(NamedTuple):
    """A quoted text in a program's code, which may be a command."""

    text: str


def judge_origins(calls: Iterable[Call]) -> Iterator[CommandFinding]:
    """Yields a danger when one of these calls, whose output is run as code, downloads or decodes something."""
    programs = {call.program for call in calls}
    programs |= {text.rpartition("/")[2] for call in calls if call.program in WRAPPERS for text in call.texts}
    if not DOWNLOADERS.isdisjoint(programs):
        yield danger("runs_download")
    if not DECODERS.isdisjoint(programs):
        yield danger("runs_decoded")


def handed_over(call: Call, scene: Scene) -> Iterator[CommandFinding | CodeText | str]:
    """Yields findings about a call, and the texts that it passes to shells and interpreters to run."""
    if call.program in SHELLS:
        yield from _shell_text(call, scene)
    elif call.program in INTERPRETERS:
        yield from _code(call, scene)
    yield from _option_texts(call)


def _script_file(call: Call, script: Word, scene: Scene) -> Iterator[CommandFinding]:
    """Judges a script file that a call runs, or `<(…)` in place of the file."""
    yield from judge_origins(script.inside)
    if script.text.rpartition("/")[2] in scene.downloaded:
        yield danger("runs_download")
    yield ask("runs_script", program=call.program, script=script.text)


def _shell_text(call: Call, scene: Scene) -> Iterator[CommandFinding | str]:
    """Judges `bash -c text`, `bash script`, and a bare `bash` that reads its input; `eval`, `source`, `trap`, `at`."""
    words = list(call.arguments)
    is_text = call.program in ("eval", "trap")
    while words and words[0].text.startswith(("-", "+")) and words[0].text not in ("-", "--"):
        option = words.pop(0).text
        is_text = is_text or option == "--command" or (option[0] == "-" and option[1:2] != "-" and "c" in option)
        if option in SHELL_VALUES and words:
            words.pop(0)
        if option in ("-s", "-is"):
            words = []
    if words and words[0].text == "--":
        words.pop(0)
    if is_text and words:
        yield ask("runs_code", program=call.program)
        yield from judge_origins([inner_call for word in words for inner_call in word.inside])
        yield joined(words) if call.program == "eval" else words[0].text
        if not re.search(r"\w", words[0].text):
            yield danger("runs_input")
    elif not words or words[0].text in STANDARD_INPUT or call.program in ("at", "batch"):
        yield ask("runs_fed", program=call.program)
        yield from judge_origins(call.piped)
        yield call.input_text or ""
    else:
        yield from _script_file(call, words[0], scene)


def _code(call: Call, scene: Scene) -> Iterator[CommandFinding | CodeText]:
    """Judges the code that an interpreter runs: arguments that look like code, else a script file or the input."""
    if call.program not in AWKS:
        yield ask("runs_code", program=call.program)
    yield from judge_origins([inner_call for word in call.arguments for inner_call in word.inside])
    codes = [text for text in call.texts if LOOKS_LIKE_CODE.search(text)]
    scripts = [word for word in call.arguments if not word.text.startswith(("-", "+", "/dev/", "/proc/"))]
    if not codes and scripts:
        yield from _script_file(call, scripts[0], scene)
    elif not codes:
        yield from judge_origins(call.piped)
        codes = [call.input_text or ""]
    for code in codes:
        yield from _judge_code(code)


def _judge_code(text: str) -> Iterator[CommandFinding | CodeText]:
    """Judges the code of a program for dangers. If the code can run commands, every text of several words in it may be
    a command, and so may the arguments of a call that runs programs."""
    destroying_match = CODE_DESTROYS.search(text)
    if destroying_match:
        yield danger("code_destroys", call=destroying_match[0].strip())
    if CODE_CONNECTS.search(text) and CODE_TAKES_OVER.search(text):
        yield danger("remote_shell", program="")
    if CODE_EVALUATES.search(text) and CODE_DECODES.search(text):
        yield danger("runs_decoded")
    if CODE_EVALUATES.search(text) and CODE_DOWNLOADS.search(text):
        yield danger("runs_download")
    if CODE_RUNS.search(text):
        commands = (literal for literal in _literals(text) if len(literal.split()) > 1)
        yield from map(CodeText, islice(commands, MOST_LITERALS))
        yield from (CodeText(line[1]) for line in islice(EDITOR_RUNS.finditer(text), MOST_LITERALS))
        for arguments in islice(RUN_WITH.finditer(text), MOST_LITERALS):
            yield CodeText(" ".join(_literals(arguments[1])))


def _literals(text: str) -> Iterator[str]:
    """Yields the quoted texts in code. A quotation mark that is never closed is searched for only once, so the time is
    linear."""
    offset, open_until = 0, dict[str, int]()
    while opening_match := OPENING_MARK.search(text, offset):
        quote, offset = opening_match[0], opening_match.end()
        if offset <= open_until.get(quote, -1):
            continue
        closing_mark = CLOSING_MARKS.get(quote[-1], quote[-1]) if quote[0] in "%q" else quote
        line = LINE_OF_TEXT[quote].match(text, offset) if quote in LINE_OF_TEXT else None
        end_offset = line.end() if line else text.find(closing_mark, offset)
        if end_offset < 0 or not text.startswith(closing_mark, end_offset):
            open_until[quote] = len(text) if end_offset < 0 else end_offset
            continue
        yield text[offset:end_offset].replace('\\"', '"').replace("\\'", "'")
        offset = end_offset + len(closing_mark)


def _option_texts(call: Call) -> Iterator[CommandFinding | str]:
    """Yields commands in options, in sed's scripts, in the settings of ssh and the small languages of database
    clients. An option that a reading program is known to have runs nothing, whatever its name: `--diff-filter`."""
    reader = READERS.get(call.program) or GIT_READERS.get(call.program)
    for index, text in enumerate(call.texts):
        if reader and text.startswith("--") and text.partition("=")[0] in reader.options:
            continue
        match = RUNS_BY_OPTION.match(text) or RUNS_BY_LETTER.match(f"{call.program} {text}")
        if match:
            yield ask("option_changes", program=call.program, option=text)
            yield (match[1] or "").removeprefix("exec=")
            yield joined(call.arguments[index + 1 :][:1])
            yield joined(call.arguments[index + 1 :])
        if call.program in ("sed", "gsed"):
            yield from (script[1] for script in SED_RUNS.finditer(text))
    if call.program in ("ssh", "scp", "sftp", "mosh") or call.program.startswith("git ") or "sql" in call.program:
        for command in INSIDE_WORDS.finditer("\n".join((*call.texts, call.input_text or ""))):
            yield command[1].replace("% ", "\\ ")


def judge_assignments(assignments: Iterable[tuple[str, Word]]) -> Iterator[CommandFinding | str]:
    """Judges assignments of variables that change what other programs do. A command that looks harmless may run
    something else with them."""
    for name, value in assignments:
        if CHANGES_WHAT_RUNS.match(name):
            yield ask("changes_what_runs", name=name)
            yield value.text
        else:
            yield ask("sets_variable", name=name)


def named_words(command: str) -> list[str]:
    """Returns the arguments of a command's calls that may be paths. Code for an interpreter and here-documents are left
    out. Any other text may be a path, even one with spaces, brackets or quotes in it."""
    try:
        calls = parse(command).calls
    except TooMuch:
        return []
    words = list[str]()
    for call in calls:
        runs_code = call.program in SHELLS or call.program in INTERPRETERS
        for text_before, text in pairwise(("", *call.texts)):
            if runs_code and CODE_OPTION.fullmatch(text_before):
                words += named_words(text) if call.program in SHELLS else []
            else:
                words.append(text)
        words += [redirect.target.text for redirect in call.redirects]
    return words
