"""Disks, devices and file systems: what is overwritten there does not come back."""

from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.rules.deleting import judge_written
from duckflow.safety.commands.text.words import Word
from duckflow.safety.commands.verdict import CommandFinding, danger

OVERWRITES = frozenset(
    ("fdisk", "sfdisk", "cfdisk", "parted", "gdisk", "sgdisk", "wipefs", "mkswap", "blkdiscard", "badblocks", "hdparm")
    + ("lvremove", "vgremove", "pvremove", "lvreduce", "newfs", "format", "diskutil", "asr", "flashrom", "nvme")
    + ("wipe", "resize2fs", "tune2fs", "debugfs", "xfs_repair", "fsck", "e2fsck", "zerofree")
)
LOOKS_ONLY = frozenset(("-l", "--list", "print", "list", "info", "-n", "--help", "--version", "-h", "smart-log", "-p"))
DESTROYS = {
    "zpool": ("destroy", "labelclear", "remove", "detach"),
    "zfs": ("destroy", "rollback"),
    "btrfs": ("delete",),
    "cryptsetup": ("luksFormat", "luksErase", "erase", "luksKillSlot", "luksRemoveKey", "reencrypt"),
    "mdadm": ("--zero-superblock", "--stop", "--remove", "--fail", "--create", "-S"),
    "dmsetup": ("remove", "remove_all", "wipe_table"),
    "losetup": ("-D", "--detach-all"),
    "umount": ("-a", "-af"),
    "swapoff": ("-a",),
}


def judge_disk(call: Invocation) -> Iterator[CommandFinding]:
    if call.program.startswith("mkfs") or (
        call.program in OVERWRITES and call.texts and LOOKS_ONLY.isdisjoint(call.texts)
    ):
        yield danger("overwrites_disk", program=call.program)
    for word in DESTROYS.get(call.program, ()):
        if word in call.texts:
            yield danger("overwrites_disk", program=f"{call.program} {word}")


def judge_dd(call: Invocation) -> Iterator[CommandFinding]:
    for word in call.arguments:
        name, _, path = word.text.partition("=")
        if name == "of":
            yield from judge_written(call, Word(path, word.known, word.plain))
