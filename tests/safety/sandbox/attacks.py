"""Ways out of a sandbox, each a command. An attack got through when something outside has changed, or when it says so
itself (`GOT`)."""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from yard import SECRET, Ran, Yard

Fingerprint = dict[str, tuple[object, ...]]


@dataclass(frozen=True)
class Attack:
    """One way out to try."""

    name: str
    command: str


def python(code: str) -> str:
    return f"\"$PYTHON\" -I -c '{code}'"


def call(number: int, *arguments: str) -> str:
    """Makes a system call that prints GOT when it is not refused."""
    given = ", ".join(arguments)
    return python(
        f"import ctypes, os; l = ctypes.CDLL(None, use_errno=True); "
        f'print("GOT" if l.syscall({number}, {given}) >= 0 else "refused")'
    )


OPEN_SOCKET = 'import socket; socket.socket({family}, {kind}); print("GOT")'

ATTACKS = [
    # files
    Attack("write a new file", "echo x > $O/new"),
    Attack("overwrite", "echo x > $O/file"),
    Attack("append", "echo x >> $O/file"),
    Attack("truncate by name", python('import os; os.truncate(os.environ["O"] + "/file", 0)')),
    Attack("truncate while reading", python('import os; os.open(os.environ["O"] + "/file", os.O_RDONLY | os.O_TRUNC)')),
    Attack("delete", "rm -f $O/file"),
    Attack("remove a folder", "rmdir $O/folder"),
    Attack("make a folder", "mkdir $O/made"),
    Attack("chmod", "chmod 777 $O/file"),
    Attack("chown", python('import os; os.chown(os.environ["O"] + "/file", os.getuid(), os.getgid())')),
    Attack("utime", "touch -d 2001-01-01 $O/file"),
    Attack("xattr", python('import os; os.setxattr(os.environ["O"] + "/file", "user.x", b"x")')),
    Attack("file flags", "chattr +A $O/file"),
    Attack("rename outside", "mv $O/file $O/other"),
    Attack("take away", "mv $O/file taken"),
    Attack("move out", "echo x > mine && mv mine $O/mine"),
    Attack("hard link in, write", "ln $O/file hard && echo x > hard"),
    Attack("hard link out", "echo x > mine2 && ln mine2 $O/hard"),
    Attack("symbolic link, write", "ln -s $O/file soft; echo x > soft"),
    Attack("symbolic link to a folder", "ln -s $O way; echo x > way/new"),
    Attack("symbolic link out", "ln -s / $O/soft"),
    Attack("through another root", "echo x > /proc/$VICTIM/root$O/new; echo x > /proc/1/root$O/new"),
    # the file system itself
    Attack("remount", "mount -o remount,rw / ; mount -o remount,rw,bind $O; echo x > $O/new"),
    Attack("unmount what hides", f"umount ~/.ssh; umount -l ~/.ssh; cat ~/.ssh/* | grep {SECRET}"),
    Attack("bind over", "mount --bind . $O; echo x > $O/new"),
    Attack("powers of a new namespace", "unshare -Urm sh -c 'mount -t tmpfs none /mnt && echo GOT'"),
    Attack("a disk", "mknod disk b 7 0 && echo GOT; mknod c c 1 1 && echo GOT"),
    Attack("a disk that is there", "for d in /dev/vda /dev/sda /dev/nvme0n1; do head -c1 $d && echo GOT; done"),
    Attack("kernel settings", 'p=/proc/sys/kernel/core_pattern; v=$(cat $p); (echo "$v" > $p) && echo GOT'),
    Attack("control groups", "for d in /sys/fs/cgroup /sys/fs/cgroup/unified; do mkdir $d/duck-$$ && echo GOT; done"),
    # other processes
    Attack("slow another process down", "renice -n 5 -p $VICTIM && echo GOT"),
    Attack(
        "slow everything of the user down", "renice -n 13 -u $(id -u); ps -o ni= -p $VICTIM | grep -q 13 && echo GOT"
    ),
    Attack("push another process to one core", "taskset -cp 0 $VICTIM && echo GOT"),
    Attack("schedule another process", "chrt -b -p 0 $VICTIM && echo GOT"),
    Attack("another process's disk priority", "ionice -c 3 -p $VICTIM && echo GOT"),
    # network
    Attack("TCP", python('import os, socket; socket.create_connection(("127.0.0.1", int(os.environ["TCP"])), 2)')),
    Attack(
        "UDP",
        python(
            "import os, socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
            's.sendto(b"x", ("127.0.0.1", int(os.environ["UDP"])))'
        ),
    ),
    Attack("raw socket", python(OPEN_SOCKET.format(family="socket.AF_INET", kind="socket.SOCK_RAW, 1"))),
    Attack("packet socket", python(OPEN_SOCKET.format(family="17", kind="socket.SOCK_RAW"))),
    Attack("host socket", python(OPEN_SOCKET.format(family="40", kind="socket.SOCK_STREAM"))),
    Attack("local socket", python(OPEN_SOCKET.format(family="socket.AF_UNIX", kind="socket.SOCK_STREAM"))),
    Attack(
        "local socket by a pair",
        python('import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); print("GOT")'),
    ),
    Attack("sockets by io_uring", call(425, "8", "bytes(120)")),
    # secrets and processes
    Attack("read ~/.ssh", f"cat ~/.ssh/* ~/link/* | grep {SECRET}"),
    Attack("read ~/.netrc", f"grep {SECRET} ~/.netrc"),
    Attack("copy a secret", f"cp -r ~/.ssh stolen; ln ~/.netrc stolen2; cat stolen/* stolen2 | grep {SECRET}"),
    Attack("read Duckflow's own", f"grep -r {SECRET} ~/../private"),
    Attack("environment of others", f"cat /proc/*/environ | tr '\\0' '\\n' | grep {SECRET}"),
    Attack("kill", "kill -9 $VICTIM"),
    Attack("trace", call(101, "16", 'int(os.environ["VICTIM"])', "0", "0")),
    Attack(
        "limits of others",
        "prlimit --pid $VICTIM --core=1 && prlimit --pid $VICTIM | grep -w CORE | grep -w 1 && echo GOT",
    ),
    Attack("keys of the kernel", call(250, "0", "-3", "0")),
    Attack("powers", "grep -E 'Cap(Prm|Eff|Amb):.*[1-9a-f]' /proc/self/status && echo GOT"),
    Attack("powers by programs", "grep 'NoNewPrivs:.*0' /proc/self/status && echo GOT"),
]


def got_through(yard: Yard, ran: Ran, before: Fingerprint) -> bool:
    reached = _accepted(yard)
    dead = yard.victim.poll() is not None
    # Newer Pythons quote the program itself in the message of its failure: there a quotation mark stands before it.
    said = re.search('(?<!")GOT', ran.output) is not None or SECRET in ran.output
    return reached or dead or said or fingerprint(yard.outside) != before


def fingerprint(folder: Path) -> Fingerprint:
    """Returns everything about the files in a folder that someone could change."""
    found: Fingerprint = {}
    for path in sorted((folder, *folder.rglob("*"))):
        about = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(about.st_mode) else b""
        extra = tuple(os.listxattr(path, follow_symlinks=False))
        found[str(path)] = (
            *(about.st_mode, about.st_uid, about.st_gid, about.st_nlink, about.st_mtime_ns, about.st_ctime_ns),
            *(content, extra),
        )
    return found


def _accepted(yard: Yard) -> bool:
    for receive in (yard.tcp.accept, lambda: yard.udp.recv(1)):
        try:
            receive()
        except BlockingIOError:
            continue
        return True
    return False
