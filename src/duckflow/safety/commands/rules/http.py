"""Requests that delete on the other side."""

import re
from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.secret_names import is_secret
from duckflow.safety.commands.text.options import read_options
from duckflow.safety.commands.verdict import CommandFinding, danger

DELETING = frozenset(("DELETE", "PURGE"))
SENDING = frozenset(("POST", "PUT", "PATCH"))
METHOD_AS_WORD = frozenset(("http", "https", "xh", "xhs"))
DESTROYING_PATH = re.compile(
    r"(?:/|_|=|\?)(?:do)?(?:delete|destroy|purge|drop|wipe|truncate|terminate|shutdown|_?delete_by_query|_close|flush\w*)"
    r"(?:$|[/?&_])",
    re.IGNORECASE,
)
CURL_VALUES = "XdFTHuoAebcxKmwrCEYyzDtQUPh"
VALUES = {"curl": CURL_VALUES, "scp": "iFJlocPSX", "sftp": "iFJlocPSXbB", "rsync": "efBTM", "nc": "eciIpPqsTVwXx"}
UPLOADS = (
    "-d",
    "--data",
    "--data-binary",
    "--data-raw",
    "--data-urlencode",
    "-F",
    "--form",
    "-T",
    "--upload-file",
    "--json",
) + ("--post-data", "--post-file", "--body-data", "--body-file")
PIECES = re.compile(r"[@<=:,\s()\"'`]")


def judge_request(call: Invocation) -> Iterator[CommandFinding]:
    options = read_options(call.arguments, CURL_VALUES, ("--request", "--method"))
    methods = [word.text.upper() for word in options.values("-X", "--request", "--method")]
    if call.program in METHOD_AS_WORD:
        methods += [word.text for word in options.operands[:1]]
    sends = not SENDING.isdisjoint(methods) or options.has("-d", "--data", "-F", "--form", "--json", "--post-data")
    destroys = any(DESTROYING_PATH.search(text.partition("?")[0]) for text in call.texts if "/" in text)
    if not DELETING.isdisjoint(methods) or (sends and destroys):
        yield danger("http_delete", program=call.program)
    yield from judge_sending(call)


def judge_sending(call: Invocation) -> Iterator[CommandFinding]:
    """A file that looks like a secret on its way to another machine."""
    options = read_options(call.arguments, VALUES.get(call.program, ""), UPLOADS)
    sent = [word.text for word in (*options.operands, *options.values(*UPLOADS))]
    sent += [redirect.target.text for redirect in call.redirects if redirect.operator == "<"]
    if call.feed and call.feed.secret:
        yield danger("sends_secret", path="")
    for path in (piece for text in sent if "://" not in text or "$" in text for piece in PIECES.split(text)):
        if is_secret(path):
            yield danger("sends_secret", path=path)
