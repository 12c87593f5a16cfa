"""Numbers of the system calls that the filter knows, for the two machines that it is made for."""

from collections.abc import Mapping
from dataclasses import dataclass

NEW = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "mount_setattr": 442,
    "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "open_tree_attr": 467, "file_setattr": 469,
}  # fmt: skip

X86_64 = NEW | {
    "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41, "socketpair": 53, "clone": 56, "semget": 64,
    "semop": 65, "semctl": 66, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "chmod": 90, "fchmod": 91,
    "chown": 92, "fchown": 93, "lchown": 94, "utime": 132, "setpriority": 141, "sched_setparam": 142,
    "sched_setscheduler": 144, "pivot_root": 155, "mount": 165, "umount2": 166, "setxattr": 188, "lsetxattr": 189,
    "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "sched_setaffinity": 203,
    "semtimedop": 220, "utimes": 235, "mq_open": 240, "mq_unlink": 241, "add_key": 248, "request_key": 249,
    "keyctl": 250, "ioprio_set": 251, "fchownat": 260, "futimesat": 261, "fchmodat": 268, "unshare": 272,
    "utimensat": 280, "perf_event_open": 298, "prlimit64": 302, "setns": 308, "sched_setattr": 314, "bpf": 321,
}  # fmt: skip

AARCH64 = NEW | {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
    "ioctl": 29, "ioprio_set": 30, "umount2": 39, "mount": 40, "pivot_root": 41, "fchmod": 52, "fchmodat": 53,
    "fchownat": 54, "fchown": 55, "utimensat": 88, "unshare": 97, "sched_setparam": 118, "sched_setscheduler": 119,
    "sched_setaffinity": 122, "setpriority": 140, "mq_open": 180, "mq_unlink": 181, "msgget": 186, "msgctl": 187,
    "msgrcv": 188, "msgsnd": 189, "semget": 190, "semctl": 191, "semtimedop": 192, "semop": 193, "shmget": 194,
    "shmctl": 195, "shmat": 196, "socket": 198, "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219,
    "clone": 220, "perf_event_open": 241, "prlimit64": 261, "setns": 268, "sched_setattr": 274, "bpf": 280,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor as the kernel's filter sees it."""

    audit_arch: int
    numbers: Mapping[str, int]
    first_foreign: int | None = None
    """From this number on the calls belong to another binary interface (x32)."""


MACHINES = {
    "x86_64": Machine(0xC000003E, X86_64, first_foreign=0x40000000),
    "aarch64": Machine(0xC00000B7, AARCH64),
}
