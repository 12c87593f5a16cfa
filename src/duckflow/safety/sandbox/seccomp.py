"""The filter of system calls, as a program for the kernel's packet filter machine.

Sockets are refused by family. With bubblewrap the command has a network of its own, so its own 127.0.0.1 may work;
what such a network does not stop are local sockets (the docker daemon's) and kinds of sockets that know no borders.
io_uring could open sockets behind the filter's back, so it is not there. Names for new user namespaces are refused:
they would hand out powers over mounts that the sandbox has taken away."""

import errno
import os
import socket
import struct
from collections.abc import Iterable

from duckflow.safety.sandbox.syscalls import MACHINES, Machine

Instruction = tuple[int, int, int, int]

LOAD, EQUAL, AT_LEAST, ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
NUMBER_AT, ARCH_AT, ARGUMENTS_AT = 0, 4, 16
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000

AF_NETLINK = 16
CLONE_NEWUSER = 0x10000000
SOCKET_TYPE = 0xF
# A pair of datagram sockets can be pointed at any other local socket; these two kinds stay a pair.
LASTING_PAIRS = (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR = 0x40086602, 0x401C5820

REFUSED = (
    "mount", "umount2", "pivot_root", "open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount",
    "fspick", "mount_setattr", "setns", "keyctl", "add_key", "request_key", "bpf", "perf_event_open",
)  # fmt: skip
# Programs take these for an old kernel and go another way.
MISSING = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3")
# What Landlock does not look at, and what bubblewrap's namespaces stop anyway.
REFUSED_WITHOUT_NAMESPACES = (
    "chown", "fchown", "lchown", "fchownat", "setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr",
    "lremovexattr", "fremovexattr", "removexattrat", "file_setattr", "shmget", "shmat", "shmctl", "semget", "semop",
    "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink",
)  # fmt: skip
# By these a command that only reads could still change files: Landlock looks at what is in them, not at their modes.
CHANGES_OF_FILES = ("chmod", "fchmod", "fchmodat", "fchmodat2", "utime", "utimes", "futimesat", "utimensat")
# The first argument names a process; 0 is the caller itself.
ONLY_OF_ITSELF = ("prlimit64", "sched_setparam", "sched_setscheduler", "sched_setattr", "sched_setaffinity")
# Whose priority: the first argument is the kind (one process, a group, a user), the second its number.
PRIORITIES = {"setpriority": 0, "ioprio_set": 1}


def machine() -> Machine | None:
    """This computer's; none when the filter is not made for it."""
    return MACHINES.get(os.uname().machine)


def bytecode(known: Machine, namespaces: bool, network: bool, unix_sockets: bool, writes: bool = True) -> bytes:
    """The filter for a command that has namespaces of its own (bubblewrap) or has not (Landlock). Without `writes`
    a command without namespaces cannot change the modes and times of files either."""
    numbers = known.numbers
    refused = REFUSED if namespaces else REFUSED + REFUSED_WITHOUT_NAMESPACES
    if not (namespaces or writes):
        refused += CHANGES_OF_FILES
    requests = (TIOCSTI, TIOCLINUX) if namespaces else (TIOCSTI, TIOCLINUX, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR)
    families = [AF_NETLINK]
    families += [socket.AF_INET, socket.AF_INET6] if network or namespaces else []
    families += [socket.AF_UNIX] if unix_sockets else []
    program = _same_interface(known)
    program += [step for name in refused if name in numbers for step in _when(numbers[name], [_refuse(errno.EPERM)])]
    program += [step for name in MISSING for step in _when(numbers[name], [_refuse(errno.ENOSYS)])]
    program += _when(numbers["socket"], [_argument(0), *_only(families)])
    if not unix_sockets:
        program += _when(numbers["socketpair"], _pairs())
    program += _when(numbers["ioctl"], [_argument(1), *_none_of(requests)])
    for name in ("clone", "unshare"):
        program += _when(numbers[name], [_argument(0), (ANY_BIT, 0, 1, CLONE_NEWUSER), _refuse(errno.EPERM), _allow()])
    if not namespaces:
        for name in ONLY_OF_ITSELF:
            program += _when(numbers[name], [_argument(0), *_only([0])])
        for name, one_process in PRIORITIES.items():
            kind = [_argument(0), (EQUAL, 1, 0, one_process), _refuse(errno.EPERM)]
            program += _when(numbers[name], [*kind, _argument(1), *_only([0])])
    program.append(_allow())
    return b"".join(struct.pack("<HBBI", *step) for step in program)


def _same_interface(known: Machine) -> list[Instruction]:
    """A call by another interface has other numbers: the filter would read it wrongly."""
    steps = [(LOAD, 0, 0, ARCH_AT), (EQUAL, 1, 0, known.audit_arch), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER_AT)]
    if known.first_foreign is not None:
        steps += [(AT_LEAST, 0, 1, known.first_foreign), (RETURN, 0, 0, KILL)]
    return steps


def _when(number: int, steps: list[Instruction]) -> list[Instruction]:
    """The steps are for this call only, and must end it one way or the other."""
    return [(EQUAL, 0, len(steps), number), *steps]


def _only(values: Iterable[int]) -> list[Instruction]:
    allowed = [step for value in values for step in ((EQUAL, 0, 1, value), _allow())]
    return [*allowed, _refuse(errno.EPERM)]


def _none_of(values: Iterable[int]) -> list[Instruction]:
    refused = [step for value in values for step in ((EQUAL, 0, 1, value), _refuse(errno.EPERM))]
    return [*refused, _allow()]


def _pairs() -> list[Instruction]:
    return [
        *(_argument(0), (EQUAL, 1, 0, socket.AF_UNIX), _refuse(errno.EPERM)),
        *(_argument(1), (AND, 0, 0, SOCKET_TYPE), *_only(LASTING_PAIRS)),
    ]


def _argument(index: int) -> Instruction:
    return (LOAD, 0, 0, ARGUMENTS_AT + 8 * index)


def _refuse(reason: int) -> Instruction:
    return (RETURN, 0, 0, ERRNO | reason)


def _allow() -> Instruction:
    return (RETURN, 0, 0, ALLOW)
