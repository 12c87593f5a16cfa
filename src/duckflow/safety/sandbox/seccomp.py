"""The filter of system calls, as a program for the kernel's packet filter machine (BPF).

Sockets are refused by family. With bubblewrap the command has a network of its own, so its own 127.0.0.1 may work. Such
a network does not stop local sockets (the docker daemon's) and kinds of sockets that ignore namespaces. io_uring could
open sockets past the filter, so the filter reports that the kernel has no io_uring. New user namespaces are refused:
they would give back powers over mounts that the sandbox has taken away. Nobody may trace bubblewrap's own first
process, read it or take open files from it, because that process must end with Duckflow. A command may trace its own
processes."""

import errno
import os
import socket
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

NEW = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "mount_setattr": 442, "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "open_tree_attr": 467,
    "file_setattr": 469,
}  # fmt: skip

X86_64 = NEW | {
    "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41, "socketpair": 53, "clone": 56, "semget": 64,
    "semop": 65, "semctl": 66, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "chmod": 90, "fchmod": 91,
    "chown": 92, "fchown": 93, "lchown": 94, "ptrace": 101, "utime": 132, "setpriority": 141, "sched_setparam": 142,
    "sched_setscheduler": 144, "pivot_root": 155, "mount": 165, "umount2": 166, "setxattr": 188, "lsetxattr": 189,
    "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "sched_setaffinity": 203,
    "semtimedop": 220, "utimes": 235, "mq_open": 240, "mq_unlink": 241, "add_key": 248, "request_key": 249,
    "keyctl": 250, "ioprio_set": 251, "fchownat": 260, "futimesat": 261, "fchmodat": 268, "unshare": 272,
    "utimensat": 280, "perf_event_open": 298, "prlimit64": 302, "setns": 308, "process_vm_readv": 310,
    "process_vm_writev": 311, "sched_setattr": 314, "bpf": 321,
}  # fmt: skip

AARCH64 = NEW | {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
    "ioctl": 29, "ioprio_set": 30, "umount2": 39, "mount": 40, "pivot_root": 41, "fchmod": 52, "fchmodat": 53,
    "fchownat": 54, "fchown": 55, "utimensat": 88, "unshare": 97, "ptrace": 117, "sched_setparam": 118,
    "sched_setscheduler": 119, "sched_setaffinity": 122, "setpriority": 140, "mq_open": 180, "mq_unlink": 181,
    "msgget": 186, "msgctl": 187,
    "msgrcv": 188, "msgsnd": 189, "semget": 190, "semctl": 191, "semtimedop": 192, "semop": 193, "shmget": 194,
    "shmctl": 195, "shmat": 196, "socket": 198, "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219,
    "clone": 220, "perf_event_open": 241, "prlimit64": 261, "setns": 268, "process_vm_readv": 270,
    "process_vm_writev": 271, "sched_setattr": 274, "bpf": 280,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Machine:
    """A kind of processor, with the numbers of the system calls that the filter names."""

    audit_arch: int
    numbers: Mapping[str, int]
    first_foreign: int | None = None
    """System calls with this number or a higher one belong to another binary interface (x32)."""


MACHINES = {
    "x86_64": Machine(0xC000003E, X86_64, first_foreign=0x40000000),
    "aarch64": Machine(0xC00000B7, AARCH64),
}


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
    "pidfd_getfd",
)  # fmt: skip
# Programs take a missing call as the sign of an old kernel and go another way.
MISSING = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3")
# Calls that Landlock does not check, and that bubblewrap's namespaces stop anyway.
REFUSED_WITHOUT_NAMESPACES = (
    "chown", "fchown", "lchown", "fchownat", "setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr",
    "lremovexattr", "fremovexattr", "removexattrat", "file_setattr", "shmget", "shmat", "shmctl", "semget", "semop",
    "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink",
)  # fmt: skip
# Calls by which a command that only reads could still change files: Landlock checks their contents, not their modes.
CHANGES_OF_FILES = ("chmod", "fchmod", "fchmodat", "fchmodat2", "utime", "utimes", "futimesat", "utimensat")
# The first argument names a process; 0 is the caller itself.
ONLY_OF_ITSELF = ("prlimit64", "sched_setparam", "sched_setscheduler", "sched_setattr", "sched_setaffinity")
# The argument that names the process that is looked into.
INTO_A_PROCESS = {"ptrace": 1, "process_vm_readv": 0, "process_vm_writev": 0}
FIRST_PROCESS = 1
# The first argument is the kind (one process, a group, a user), the second its number.
PRIORITIES = {"setpriority": 0, "ioprio_set": 1}


def machine() -> Machine | None:
    """Returns the data of this computer's processor, or None when the filter does not support it."""
    return MACHINES.get(os.uname().machine)


def bytecode(known: Machine, namespaces: bool, network: bool, unix_sockets: bool, writes: bool = True) -> bytes:
    """Returns the filter for a command. `namespaces` says whether the command has namespaces of its own, as with
    bubblewrap. If it has none, and `writes` is False, it cannot change the modes and times of files either."""
    numbers = known.numbers
    refused_names = REFUSED if namespaces else REFUSED + REFUSED_WITHOUT_NAMESPACES
    if not (namespaces or writes):
        refused_names += CHANGES_OF_FILES
    refused_requests = (TIOCSTI, TIOCLINUX) if namespaces else (TIOCSTI, TIOCLINUX, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR)
    families = [AF_NETLINK]
    families += [socket.AF_INET, socket.AF_INET6] if network or namespaces else []
    families += [socket.AF_UNIX] if unix_sockets else []
    program = _same_interface(known)
    program += [
        step for name in refused_names if name in numbers for step in _when(numbers[name], [_refuse(errno.EPERM)])
    ]
    program += [step for name in MISSING for step in _when(numbers[name], [_refuse(errno.ENOSYS)])]
    program += _when(numbers["socket"], [_argument(0), *_only(families)])
    if not unix_sockets:
        program += _when(numbers["socketpair"], _pairs())
    program += _when(numbers["ioctl"], [_argument(1), *_none_of(refused_requests)])
    for name in ("clone", "unshare"):
        program += _when(numbers[name], [_argument(0), (ANY_BIT, 0, 1, CLONE_NEWUSER), _refuse(errno.EPERM), _allow()])
    if namespaces:
        for name, argument in INTO_A_PROCESS.items():
            program += _when(numbers[name], [_argument(argument), *_none_of([FIRST_PROCESS])])
    else:
        for name in ONLY_OF_ITSELF:
            program += _when(numbers[name], [_argument(0), *_only([0])])
        for name, one_process in PRIORITIES.items():
            kind_check = [_argument(0), (EQUAL, 1, 0, one_process), _refuse(errno.EPERM)]
            program += _when(numbers[name], [*kind_check, _argument(1), *_only([0])])
    program.append(_allow())
    return b"".join(struct.pack("<HBBI", *step) for step in program)


def _same_interface(known: Machine) -> list[Instruction]:
    """Returns steps that end a process which calls the kernel by another binary interface. That interface numbers the
    system calls differently, so the filter would misread them."""
    steps = [(LOAD, 0, 0, ARCH_AT), (EQUAL, 1, 0, known.audit_arch), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER_AT)]
    if known.first_foreign is not None:
        steps += [(AT_LEAST, 0, 1, known.first_foreign), (RETURN, 0, 0, KILL)]
    return steps


def _when(number: int, steps: list[Instruction]) -> list[Instruction]:
    """Returns a check for this system call and then these steps, which must allow or refuse the call."""
    return [(EQUAL, 0, len(steps), number), *steps]


def _only(values: Iterable[int]) -> list[Instruction]:
    allowing_steps = [step for value in values for step in ((EQUAL, 0, 1, value), _allow())]
    return [*allowing_steps, _refuse(errno.EPERM)]


def _none_of(values: Iterable[int]) -> list[Instruction]:
    refusing_steps = [step for value in values for step in ((EQUAL, 0, 1, value), _refuse(errno.EPERM))]
    return [*refusing_steps, _allow()]


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
