"""Code in another language given on the command line: what it deletes, what it runs."""

import re
from collections.abc import Iterator

from duckflow.safety.commands.opinion import Opinion, RunsText
from duckflow.safety.commands.verdict import danger

DESTROYS = re.compile(
    r"\brmtree\b|\brm_rf\b|\brm_r\b|\bremove_tree\b|\bremove_dir_all\b|\bremove_entry\w*\b|\brimraf\b|\bRemoveAll\b"
    r"|\b(?:fs|fsp|promises|fsPromises)\b.{0,40}?\.(?:rm|rmdir|unlink)(?:Sync)?\s*\(|\b(?:rm|rmdir|unlink)Sync\s*\("
    r"|\bos\.(?:remove|unlink|rmdir|removedirs|truncate)\b|\.(?:unlink|rmdir)\s*\(|\bFile\.(?:delete|unlink)\b"
    r"|\bDir\.(?:delete|rmdir|unlink)\b|\bFileUtils\.(?:rm|remove)\w*|\bunlink\b\s*[(\"'$<]|\brmdir\b\s*[(\"'$]"
    r"|\bunlink\s+(?:glob|<)|\bfile\s+delete\b|\bRemove-Item\b|\bdelete\s+(?:every|all)\b"
)
RUNS = re.compile(
    r"\bos\.(?:system|popen|exec\w*|spawn\w*|posix_spawn)\b|\bsubprocess\b|\bpty\.spawn\b|\bcommands\.getoutput\b"
    r"|\bchild_process\b|\bexec(?:File)?(?:Sync)?\s*\(|\bspawn(?:Sync)?\s*\(|\bsystem\b|\bqx\b|`|%x|\bshell_exec\b|\bpassthru\b"
    r"|\bproc_open\b|\bpopen\d?\b|\bIO\.popen\b|\bKernel\b|\bOpen3\b|\bdo shell script\b|\bRuntime\b|\bexec\b"
    r"|\bos\.execute\b|\bDeno\.(?:run|Command)\b|\bBun\.(?:spawn|\$)|__import__|\bgetattr\b|\bimportlib\b"
)
CONNECTS = re.compile(r"socket|TCPSocket|fsockopen|net\.connect|/dev/tcp|\$_ENV|INET", re.IGNORECASE)
TAKES_OVER = re.compile(r"dup2|pty\.spawn|/bin/(?:ba)?sh|exec|STDIN", re.IGNORECASE)
DECODES = re.compile(
    r"b64decode|base64|fromhex|decode64|unhexlify|atob|Buffer\.from|zlib\.decompress|codecs\.decode|rot_?13"
)
EVALUATES = re.compile(r"\beval\b|\bexec\b|\bcompile\b|\bFunction\s*\(|\bsystem\b|\bpopen\b")
DOWNLOADS = re.compile(r"urlopen|urllib|requests\.get|http\.get|fetch\(|Net::HTTP|open-uri|file_get_contents\(.http")
LITERAL = re.compile(
    r"'''(.*?)'''|\"\"\"(.*?)\"\"\"|'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"|`([^`]*)`|%x\{(.*?)\}|qx[({/|](.*?)[)}/|]",
    re.DOTALL,
)
LIST = re.compile(r"[\[(]([^\[\]()]*)[\])]")
MOST_LITERALS = 20


def judge_code(text: str) -> Iterator[Opinion]:
    found = DESTROYS.search(text)
    if found:
        yield danger("code_destroys", call=found[0].strip())
    if CONNECTS.search(text) and TAKES_OVER.search(text):
        yield danger("remote_shell", program="")
    if EVALUATES.search(text) and DECODES.search(text):
        yield danger("runs_decoded")
    if EVALUATES.search(text) and DOWNLOADS.search(text):
        yield danger("runs_download")
    if RUNS.search(text):
        yield from _commands(text)


def _commands(text: str) -> Iterator[RunsText]:
    """Every text in the code may be a command once the code can run commands; so may a list of texts."""
    for found in list(LITERAL.finditer(text))[:MOST_LITERALS]:
        yield RunsText(_inside(found))
    for group in list(LIST.finditer(text))[:MOST_LITERALS]:
        words = [_inside(found) for found in LITERAL.finditer(group[1])]
        if len(words) > 1:
            yield RunsText(" ".join(words))


def _inside(found: re.Match[str]) -> str:
    return next((part for part in found.groups() if part is not None), "").replace('\\"', '"').replace("\\'", "'")
