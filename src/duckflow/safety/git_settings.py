"""Reads files of git's settings, and knows which settings start no program."""

import re
from collections.abc import Iterator
from functools import lru_cache

MOST_LINES, LONGEST_SECTION = 50_000, 1000
HEADER = r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]'
SETTING = r"(?s)([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?"
WHOLE_LINE = r'((?:[^"\\#;\n]|\\[\s\S]|"(?:[^"\\\n]|\\[\s\S])*")*)(?:[#;][^\n]*+)?(?:\n|\Z)'
BOOLEAN = frozenset(("true", "false", "yes", "no", "on", "off", "1", "0", ""))
# Settings that name no program and no other file with settings. Any other setting may make git run a program.
HARMLESS = (
    r"(?s)core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf"
    r"|eol|safecrlf|quotepath|abbrev|compression|bigfilethreshold|checkstat|trustctime|protecthfs|protectntfs"
    r"|untrackedcache|preloadindex|commitgraph|multipackindex|longpaths|sparsecheckout|sparsecheckoutcone)"
    r"|extensions\.(?:objectformat|worktreeconfig|refstorage)"
    r"|remote\.(?:.*\.)(?:url|pushurl|fetch|push|tagopt|prune|mirror|skipdefaultupdate|skipfetchall|gh-resolved)"
    r"|submodule\.(?:.*\.)(?:url|active|branch|path|ignore|fetchrecursesubmodules)"
    r"|diff\.(?:algorithm|renames|renamelimit|mnemonicprefix|noprefix|context|colormoved|wserrorhighlight)"
    r"|merge\.(?:ff|conflictstyle|autostash|renames)|commit\.(?:verbose|cleanup|status)|log\.(?:date|decorate|follow)"
    r"|branch\.(?!.*\.mergeoptions$).*|(?:user|color|column|pull|push|fetch|rebase|index|pack|status)\..*"
    r"|(?:gc|init)\.(?!recentobjectshook|templatedir).*"
    r"|lfs\.(?:url|pushurl|repositoryformatversion|fetchinclude|fetchexclude|concurrenttransfers|allowincompletepush)"
    r"|lfs\.(?:(?:.*\.)(?:access|locksverify)|locksverify)"
)


def is_harmless(name: str, value: str) -> bool:
    """Says whether a setting names no program and no other file with settings."""
    return value.lower() in BOOLEAN if name == "core.fsmonitor" else re.fullmatch(HARMLESS, name) is not None


@lru_cache(8)
def read_settings(text: str) -> tuple[tuple[str, str], ...]:
    """Returns the names and values of a settings file, or raises a ValueError where it cannot be read."""
    settings, section = list[tuple[str, str]](), ""
    for number, line in enumerate(_whole_lines(text.removeprefix("\ufeff"))):
        body = line.strip()
        header = re.match(HEADER, body)
        if number > MOST_LINES or (header and header.end() > LONGEST_SECTION):
            raise ValueError(line)
        if header:
            section = header[1].lower() + (f".{header[2]}" if header[2] is not None else "")
            body = body[header.end() :].strip()
        if not body:
            continue
        setting = re.fullmatch(SETTING, body)
        if not setting or not section:
            raise ValueError(line)
        settings.append((f"{section}.{setting[1].lower()}", (setting[2] or "").strip()))
    return tuple(settings)


def plain_value(value: str) -> str:
    """Returns a value of git's settings without its quotes, escapes and comment."""
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"|\\(.)|([^"\\#;]+)|([#;].*)', value)
    unquoted_pieces = (re.sub(r"\\(.)", r"\1", quoted) + escaped + plain for quoted, escaped, plain, _ in parts)
    return "".join(unquoted_pieces).strip()


def _whole_lines(text: str) -> Iterator[str]:
    """Yields the lines without their comments, joined where a backslash makes a value go on in the next line. A comment
    ends with its line, whatever it ends with."""
    text, position = text.replace("\r\n", "\n"), 0
    while position < len(text):
        line = re.compile(WHOLE_LINE).match(text, position)
        if line is None:
            raise ValueError(text[position:])
        yield line[1].replace("\\\n", "")
        position = line.end()
