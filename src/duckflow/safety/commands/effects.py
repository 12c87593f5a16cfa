"""What a call changes for the commands after it, and which files it is known to write."""

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.output import printed
from duckflow.safety.commands.report import Report
from duckflow.safety.commands.scope import Scope
from duckflow.safety.commands.text.options import read_options

WRITES_OPERANDS = frozenset(("tee", "touch", "mkdir", "rm", "rmdir", "unlink", "truncate", "shred"))
WRITES_LAST = frozenset(("cp", "mv", "ln", "install", "rsync"))
DOWNLOADERS = frozenset(("curl", "wget", "aria2c", "fetch", "http", "https", "axel", "lynx", "ftp", "sftp", "scp"))


def take_effect(call: Invocation, scope: Scope, report: Report) -> None:
    for redirect in call.redirects:
        if redirect.writes and redirect.target.text != "/dev/null":
            report.writes[redirect.target.text] = None
            _remember_text(redirect.target.text, printed(call) if call.words else None, scope)
    if not call.words:
        return
    operands = [word for word in call.arguments if not word.text.startswith("-")]
    match call.program:
        case "cd" | "pushd" | "popd":
            scope.go(operands[0] if operands else None)
        case "alias":
            for word in operands:
                name, equals, text = word.text.partition("=")
                if equals:
                    scope.aliases[name] = text
        case name if name in DOWNLOADERS:
            _remember_download(call, scope)
        case name if name in WRITES_OPERANDS:
            report.writes.update((word.text, None) for word in operands)
            for word in operands if name == "tee" else ():
                _remember_text(word.text, call.feed.text if call.feed else None, scope)
        case name if name in WRITES_LAST and len(operands) > 1:
            report.writes[operands[-1].text] = None
        case _:
            pass


def _remember_text(path: str, text: str | None, scope: Scope) -> None:
    if text is not None:
        name = path.removeprefix("./")
        scope.written[name] = scope.written.get(name, "") + text


def _remember_download(call: Invocation, scope: Scope) -> None:
    options = read_options(call.arguments, "oO" if call.program == "wget" else "o", ("--output", "--output-document"))
    saved = [word.text for word in options.values("-o", "-O", "--output", "--output-document")]
    saved += [redirect.target.text for redirect in call.redirects if redirect.writes]
    saved += [word.text.rpartition("/")[2] for word in options.operands if "/" in word.text]
    scope.downloaded.update(name.removeprefix("./") for name in saved if name and name not in ("-", "/dev/null"))
