"""Starts one command, shut in by Landlock and seccomp, and sees to it that none of its processes outlives it.

A program of its own, given two open files (the orders, a lifeline), so that nothing is done between fork and exec in
Duckflow itself, which has threads. The process that stays outside adopts whatever the command leaves
behind, and ends it all when the command ends or the other end of the lifeline is closed, as it is when Duckflow dies.
It starts with every command, so it imports only what loads in no time: not typing, not signal, not pathlib."""

import ctypes
import marshal
import os
import select
import struct

Orders = tuple[list[str], tuple[int, int, int], list[tuple[int, str]], bytes]
"""The command, the rights that Landlock handles (none: nothing is restricted), its rules, and the filter."""

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 36, 38
SECCOMP_MODE_FILTER = 2
CAPSET = {"x86_64": 126, "aarch64": 91}
CAPABILITY_VERSION = 0x20080522
LAST_CAPABILITY = 63
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
BENEATH = 1
SIGKILL = 9
IGNORED_BY_PYTHON = (13, 25)
REAP_EVERY_MS = 1000
PAUSE_SECONDS = 0.001
CANNOT_START, NOT_FOUND, ENDED = 126, 127, 128 + SIGKILL

libc = ctypes.CDLL(None, use_errno=True)


def main(orders_file: int, lifeline: int) -> None:
    orders = read(orders_file)
    check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    child = os.fork()
    if not child:
        os.close(lifeline)
        start(*orders)
    code = watch(child, lifeline)
    end_all()
    os._exit(code)


def read(file: int) -> Orders:
    data = b""
    while part := os.read(file, 1 << 20):
        data += part
    os.close(file)
    return marshal.loads(data)


def watch(child: int, lifeline: int) -> int:
    """The command's exit code, once it or the lifeline has ended."""
    poll = select.poll()
    poll.register(os.pidfd_open(child), select.POLLIN)
    poll.register(lifeline, select.POLLIN)
    while True:
        poll.poll(REAP_EVERY_MS)
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            if not pid:
                break
        if select.select([lifeline], [], [], 0)[0]:
            return ENDED


def start(command: list[str], handled: tuple[int, int, int], rules: list[tuple[int, str]], program: bytes) -> None:
    """Becomes the command."""
    try:
        # A group of its own: a command that signals its whole group must not hit the process that looks after it.
        os.setsid()
        for number in IGNORED_BY_PYTHON:
            libc.signal(number, None)
        check(libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
        if any(handled):
            drop_capabilities()
            check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
            restrict_files(handled, rules)
            restrict_calls(program)
        os.execvp(command[0], command)
    except OSError as problem:
        os.write(2, f"{command[0]}: {problem.strerror}\n".encode())
        os._exit(NOT_FOUND if isinstance(problem, FileNotFoundError) else CANNOT_START)


def drop_capabilities() -> None:
    """Root keeps its name but not its powers."""
    for capability in range(LAST_CAPABILITY + 1):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    check(libc.syscall(CAPSET[os.uname().machine], header, bytes(24)))


def restrict_files(handled: tuple[int, int, int], rules: list[tuple[int, str]]) -> None:
    attributes = struct.pack("=QQQ", *handled)
    ruleset = check(libc.syscall(CREATE_RULESET, attributes, len(attributes), 0))
    for access, path in rules:
        try:
            # Not through a link: a rule belongs to the place it names, not to wherever a link leads by now.
            place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        libc.syscall(ADD_RULE, ruleset, BENEATH, struct.pack("=Qi", access, place), 0)
        os.close(place)
    check(libc.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def restrict_calls(program: bytes) -> None:
    steps = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(steps))
    check(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(header), 0, 0))


def check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def end_all() -> None:
    """Until no child is left: what a killed process leaves behind becomes a child of this one."""
    while children_left():
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, SIGKILL)
            except OSError:
                continue
        select.select([], [], [], PAUSE_SECONDS)


def children_left() -> bool:
    """Whether there are any, after those that have ended are put away."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return False
    return True


def descendants(top: int) -> set[int]:
    """All processes that the process has started, and those that they have started."""
    with os.scandir("/proc") as entries:
        names = [entry.name for entry in entries]
    parents = {int(name): int(status(int(name))[1]) for name in names if name.isdigit()}
    found = {top}
    while more := {pid for pid, above in parents.items() if above in found} - found:
        found |= more
    return found - {top}


def state(pid: int) -> str:
    """`R` for running and so on, as in /proc; `X` when there is no such process."""
    return status(pid)[0]


def status(pid: int) -> tuple[str, str]:
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return ("X", "0")
    try:
        # The name of the program stands in brackets and may hold anything, brackets too.
        letter, above = os.read(file, 1024).decode("ascii", "replace").rpartition(")")[2].split()[:2]
    except (OSError, ValueError):
        return ("X", "0")
    finally:
        os.close(file)
    return (letter, above)
