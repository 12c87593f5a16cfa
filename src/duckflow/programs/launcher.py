"""Starts one program, confined by Landlock and seccomp if that is ordered, and ensures that none of its processes
outlives it.

The launcher is a separate program with two open files (the orders, a lifeline), so that Duckflow itself, which has
threads, does nothing between fork and exec. The process that stays outside adopts all processes that the command leaves
behind. It ends them when the command ends, or when the other end of the lifeline is closed, as it is when Duckflow
dies. The launcher starts with every command, so it imports only modules that load in no time: not typing, not signal,
not pathlib."""

import ctypes
import marshal
import os
import select
import struct
import sys
import time

Orders = tuple[list[str], float, tuple[int, int, int], list[tuple[int, str]], bytes]
"""The orders for the launcher: the command, the seconds that it gets to end by itself when it is told to, the rights
that Landlock handles (none means no restriction), the rules for Landlock, and the seccomp filter. Without a filter only
the access to files is restricted: the command is no stranger's, and root keeps the power to read everybody's files."""

LINUX = sys.platform == "linux"

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 36, 38
SECCOMP_MODE_FILTER = 2
CAPSET = {"x86_64": 126, "aarch64": 91}
CAPABILITY_VERSION = 0x20080522
LAST_CAPABILITY = 63
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
BENEATH = 1
SIGKILL, SIGTERM = 9, 15
IGNORED_BY_PYTHON = (13, 25)
REAP_EVERY_MS, LOOK_EVERY_MS = 1000, 100
PAUSE_SECONDS = 0.001
CANNOT_START, NOT_FOUND, ENDED = 126, 127, 128 + SIGKILL

libc = ctypes.CDLL(None, use_errno=True)


def main(orders_file: int, lifeline: int) -> None:
    command, patience, handled_access, rules, program = read(orders_file)
    adopt_orphans()
    child = os.fork()
    if not child:
        os.close(lifeline)
        start(command, handled_access, rules, program)
    let_go_of_streams()
    code = watch(child, lifeline)
    if patience:
        ask_to_end(child, patience)
    end_all(child)
    os._exit(code)


def adopt_orphans() -> None:
    """Makes this process the parent of processes that its descendants leave behind, if the system can do that."""
    if LINUX:
        check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def let_go_of_streams() -> None:
    """Closes this process's streams. They belong to the program: readers at the other ends must notice when the program
    ends."""
    null_device = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null_device, stream)


def read(file: int) -> Orders:
    order_bytes = b""
    while chunk := os.read(file, 1 << 20):
        order_bytes += chunk
    os.close(file)
    return marshal.loads(order_bytes)


def watch(child: int, lifeline: int) -> int:
    """Waits until the command or the lifeline has ended, and returns the command's exit code."""
    poller = select.poll()
    if LINUX:
        poller.register(os.pidfd_open(child), select.POLLIN)
    poller.register(lifeline, select.POLLIN)
    while True:
        # If a process's end cannot be waited for together with the lifeline, it is checked often.
        poller.poll(REAP_EVERY_MS if LINUX else LOOK_EVERY_MS)
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
    """Turns this process into the command, with the restrictions that the other arguments name."""
    try:
        # The command gets its own group: if it signals its whole group, it must not hit the process that looks after
        # it.
        os.setsid()
        for number in IGNORED_BY_PYTHON:
            libc.signal(number, None)
        if LINUX:
            check(libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
        if any(handled):
            if program:
                drop_capabilities()
            check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
            restrict_files(handled, rules)
            if program:
                restrict_calls(program)
        os.execvp(command[0], command)
    except OSError as problem:
        os.write(2, f"{command[0]}: {problem.strerror}\n".encode())
        os._exit(NOT_FOUND if isinstance(problem, FileNotFoundError) else CANNOT_START)


def drop_capabilities() -> None:
    """Removes all capabilities: root keeps its name but not its powers."""
    for capability in range(LAST_CAPABILITY + 1):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    check(libc.syscall(CAPSET[os.uname().machine], header, bytes(24)))


def restrict_files(handled: tuple[int, int, int], rules: list[tuple[int, str]]) -> None:
    attributes = struct.pack("=QQQ", *handled)
    ruleset = check(libc.syscall(CREATE_RULESET, attributes, len(attributes), 0))
    for allowed_access, path in rules:
        try:
            # Links are not followed: a rule belongs to the place it names, not to where a link leads by now.
            path_fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        libc.syscall(ADD_RULE, ruleset, BENEATH, struct.pack("=Qi", allowed_access, path_fd), 0)
        os.close(path_fd)
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


def ask_to_end(child: int, patience: float) -> None:
    deadline = time.monotonic() + patience
    send_all(child, SIGTERM)
    while children_left() and time.monotonic() < deadline:
        select.select([], [], [], PAUSE_SECONDS)


def end_all(child: int) -> None:
    """Kills processes until no child is left. Orphans of a killed process become children of this process, if the
    system allows that."""
    if not LINUX:
        send_all(child, SIGKILL)
    while children_left():
        send_all(child, SIGKILL)
        select.select([], [], [], PAUSE_SECONDS)


def send_all(child: int, number: int) -> None:
    """Signals all descendants. If the system does not tell which processes descend from which, the child's group is
    signalled."""
    for pid in descendants(os.getpid()) if LINUX else (-child,):
        try:
            os.kill(pid, number)
        except OSError:
            continue


def children_left() -> bool:
    """Says whether there are children left, after ended ones have been reaped."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return False
    return True


def descendants(top: int) -> set[int]:
    """Returns all processes that the process has started, directly or indirectly."""
    with os.scandir("/proc") as proc_entries:
        names = [entry.name for entry in proc_entries]
    parents = {int(name): int(status(int(name))[1]) for name in names if name.isdigit()}
    family_pids = {top}
    while children := {pid for pid, parent in parents.items() if parent in family_pids} - family_pids:
        family_pids |= children
    return family_pids - {top}


def state(pid: int) -> str:
    """Returns the state of a process as in /proc, such as `R` for running; `X` if there is no such process."""
    return status(pid)[0]


def status(pid: int) -> tuple[str, str]:
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return ("X", "0")
    try:
        # The name of the program stands in brackets and may contain anything, even brackets.
        state_letter, parent = os.read(file, 1024).decode("ascii", "replace").rpartition(")")[2].split()[:2]
    except (OSError, ValueError):
        return ("X", "0")
    finally:
        os.close(file)
    return (state_letter, parent)
