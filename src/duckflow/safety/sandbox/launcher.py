"""Starts one command, shut in by Landlock and seccomp, and sees to it that none of its processes outlives it.

A script of its own (`python -I -S launcher.py FD`), so that nothing is done between fork and exec of Duckflow itself,
which has threads. It imports little: it starts with every command. FD holds the orders. The process that stays
outside adopts whatever the command leaves behind and ends it; SIGTERM makes it end everything."""

import ctypes
import marshal
import os
import signal
import struct
import sys
from types import FrameType
from typing import NoReturn, TypedDict, cast

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 36, 38
SECCOMP_MODE_FILTER = 2
CAPSET = {"x86_64": 126, "aarch64": 91}
CAPABILITY_VERSION = 0x20080522
LAST_CAPABILITY = 63
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
BENEATH = 1
CANNOT_START = 126
NOT_FOUND = 127

libc = ctypes.CDLL(None, use_errno=True)


class Orders(TypedDict):
    """What Duckflow wants. Without `handled` nothing is restricted: the command is only looked after."""

    parent: int
    command: list[str]
    handled: tuple[int, int, int]
    rules: list[tuple[int, str]]
    filter: bytes


def main() -> NoReturn:
    with open(int(sys.argv[1]), "rb") as file:
        orders = cast("Orders", marshal.loads(file.read()))
    signal.signal(signal.SIGTERM, end)
    check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0))
    if os.getppid() != orders["parent"]:
        sys.exit(CANNOT_START)
    child = os.fork()
    if not child:
        start(orders)
    while True:
        pid, status = os.wait()
        if pid == child:
            end_all()
            code = os.waitstatus_to_exitcode(status)
            # Nothing is left to flush or to close, and leaving this way is quicker.
            os._exit(code if code >= 0 else 128 - code)


def start(orders: Orders) -> NoReturn:
    """Becomes the command."""
    command = orders["command"]
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
        if any(orders["handled"]):
            shut_in(orders)
        os.execvp(command[0], command)
    except OSError as problem:
        os.write(2, f"{command[0]}: {problem.strerror}\n".encode())
        os._exit(NOT_FOUND if isinstance(problem, FileNotFoundError) else CANNOT_START)


def shut_in(orders: Orders) -> None:
    drop_capabilities()
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    attributes = struct.pack("=QQQ", *orders["handled"])
    ruleset = check(libc.syscall(CREATE_RULESET, attributes, len(attributes), 0))
    for access, path in orders["rules"]:
        try:
            # Not through a link: a rule belongs to the place it names, not to wherever a link leads by now.
            place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        libc.syscall(ADD_RULE, ruleset, BENEATH, struct.pack("=Qi", access, place), 0)
        os.close(place)
    check(libc.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)
    program = ctypes.create_string_buffer(orders["filter"], len(orders["filter"]))
    header = struct.pack("HxxxxxxP", len(orders["filter"]) // 8, ctypes.addressof(program))
    check(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(header), 0, 0))


def drop_capabilities() -> None:
    """Root keeps its name but not its powers."""
    for capability in range(LAST_CAPABILITY + 1):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    check(libc.syscall(CAPSET[os.uname().machine], header, bytes(24)))


def check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def end(_signal: int, _frame: FrameType | None) -> NoReturn:
    end_all()
    os._exit(128 + signal.SIGTERM)


def end_all() -> None:
    """Until no child is left: what a killed process leaves behind becomes a child of this one."""
    while True:
        for pid in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        try:
            os.wait()
        except ChildProcessError:
            return


def descendants() -> list[int]:
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name of the program is in brackets and may hold anything, brackets too.
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
    found = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return list(found - {os.getpid()})
        found |= more


if __name__ == "__main__":
    main()
