"""The table of dangers: programs that destroy, with the words that make them do it. Functions judge the rest.

A row: reason | programs | words that make a call dangerous | words that make it harmless. One of the words is enough;
`a+b` means that both are needed, and `*` fits any call. An option may stand anywhere in the call; a plain word must be
the first or second word after the program. The words after `git` are its subcommands."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from duckflow.safety.commands.paths import BROAD, RUNS_BY_ITSELF, Scene, Target, is_secret, target_of
from duckflow.safety.commands.verdict import CommandFinding, danger
from duckflow.safety.commands.words import Call, Options, Word, names, read_options

NEVER = frozenset((Target.SYSTEM, Target.ROOT, Target.HOME, Target.DEVICE, Target.REPOSITORY))
EVEN_ONE_FILE = frozenset((Target.SYSTEM, Target.DEVICE, Target.REPOSITORY))
FAR = frozenset((Target.OUTSIDE, Target.UNKNOWN))
OPEN_TO_ALL = re.compile(r"^0?[0-7]?[0-7][0-7][2367]$|^[ugo]*a[ugo]*[+=]\w*w|^[ugoa]*o[ugoa]*[+=]\w*w|^\+\w*w|^=\w*w")
RUNS_AS_OWNER = re.compile(r"^[2467]\d{3}$|^[ugoa]*[+=]\w*s")
LOCKS_OUT = re.compile(r"^0{1,4}$|^a?-\w*r")
SIGNAL = re.compile(r"^-(?:\d+|[A-Z]+\d?|s|n|l)$")


def judge_rm(call: Call, scene: Scene) -> Iterator[CommandFinding]:
    """Judges deletions. Recursion with force is dangerous everywhere but in temporary folders; recursion alone is
    dangerous for a broad target such as the home folder."""
    options = read_options(call.arguments)
    recursive, force = options.has("-r", "-R", "--recursive"), options.has("-f", "--force")
    if options.has("--no-preserve-root"):
        yield danger("deletes_broad", path="/")
    if recursive and force and not options.operands:
        yield danger("deletes_unknown", program=call.program)
    for word in options.operands:
        target_kind = target_of(word, scene)
        if target_kind in EVEN_ONE_FILE or (recursive and target_kind in BROAD):
            yield danger("deletes_broad", path=word.text)
        elif recursive and force and target_kind is not Target.TEMPORARY:
            yield danger("deletes_tree", path=word.text)
        elif recursive and target_kind in FAR:
            yield danger("deletes_outside", path=word.text)
        elif is_secret(word.text) or RUNS_BY_ITSELF.search(word.text):
            yield danger("deletes_secret", path=word.text)


def judge_move(call: Call, scene: Scene) -> Iterator[CommandFinding]:
    """Judges moves and copies. Moving a broad target (such as the home folder) away, or moving anything to /dev/null,
    is a deletion."""
    options = read_options(call.arguments, "tSm", ("--target-directory", "--suffix"))
    words = options.operands
    if words and words[-1].text == "/dev/null":
        yield danger("deletes_tree", path=words[0].text)
    if words and words[0].text == "/dev/null" and call.program == "cp":
        yield danger("empties", path=words[-1].text)
    for word in words[:-1] if call.program == "mv" else ():
        if target_of(word, scene) in NEVER:
            yield danger("deletes_broad", path=word.text)
    for word in (*words[1:][-1:], *options.values("-t", "--target-directory", "-C", "--directory")):
        yield from judge_written(word, scene)


def judge_written(word: Word, scene: Scene) -> Iterator[CommandFinding]:
    """Judges a path that is written to: devices, files that run by themselves, and the system's own files are
    dangerous."""
    target_kind = target_of(word, scene)
    if target_kind is Target.DEVICE:
        yield danger("writes_device", path=word.text)
    elif RUNS_BY_ITSELF.search(word.text):
        yield danger("writes_startup", path=word.text)
    elif target_kind in (Target.SYSTEM, Target.ROOT):
        yield danger("writes_system", path=word.text)


def judge_writer(call: Call, scene: Scene) -> Iterator[CommandFinding]:
    """Judges tee, touch and similar programs, which write every operand; dd writes `of=`, and tar writes into the
    folder of `-C`."""
    words = read_options(call.arguments).operands
    if call.program == "dd":
        words = [replace(word, text=word.text[3:]) for word in words if word.text.startswith("of=")]
    elif call.program == "tar":
        words = read_options(call.arguments, "fCIXTbgKNVHL", ("--directory",)).values("-C", "--directory")
    for word in words:
        yield from judge_written(word, scene)


def judge_rights(call: Call, scene: Scene) -> Iterator[CommandFinding]:
    """Judges chmod, chown and chgrp. Changing everything below a broad place, or giving rights to everybody, is
    dangerous."""
    options = read_options(call.arguments, "", ("--reference",))
    recursive = options.has("-R", "--recursive")
    takes_rights = any(re.match(r"^-[rwxst]+$", text) for text in call.texts)
    operands = options.operands
    mode, targets = ("", operands) if takes_rights or not operands else (operands[0].text, operands[1:])
    first_target = targets[0].text if targets else ""
    if call.program == "chmod" and recursive and (OPEN_TO_ALL.match(mode) or LOCKS_OUT.match(mode)):
        yield danger("opens_to_all", path=first_target)
    if call.program == "chmod" and RUNS_AS_OWNER.match(mode):
        yield danger("runs_as_owner", path=first_target)
    if call.program == "chown" and mode.partition(":")[0] in ("root", "0"):
        yield danger("rights", program=call.program, path=first_target)
    for word in targets:
        target_kind = target_of(word, scene)
        is_broad_target = target_kind in NEVER and target_kind is not Target.REPOSITORY
        if is_broad_target or (recursive and target_kind in FAR):
            yield danger("rights", program=call.program, path=word.text)


def judge_kill(call: Call, _: Scene) -> Iterator[CommandFinding]:
    """Judges kill: ending all processes at once, or the first process, is dangerous."""
    if "-1" in call.texts[1:] or "1" in [text for text in call.texts if not SIGNAL.match(text)]:
        yield danger("kills_all")


TABLE = """
removes_packages | apt apt-get aptitude dnf yum zypper | remove purge autoremove autopurge erase rm | -s --simulate
removes_packages | apk brew choco flatpak port snap winget | del uninstall remove rm
removes_packages | dpkg rpm | -r -P --remove --purge -e --erase | --no-act
removes_packages | pacman | -R
removes_packages | nix-collect-garbage | -d --delete-old
publishes | npm yarn pnpm cargo gem twine poetry flit hatch uv dotnet mvn dart vsce | publish unpublish deprecate yank
  push upload deploy release:perform | -n --list
overwrites_disk | fdisk sfdisk cfdisk parted gdisk sgdisk wipefs mkswap blkdiscard badblocks hdparm lvremove vgremove
  pvremove lvreduce newfs format diskutil asr flashrom nvme wipe resize2fs tune2fs debugfs xfs_repair fsck e2fsck
  zerofree mkfs | * | -l --list print list info -n -h smart-log -p
overwrites_disk | zpool zfs btrfs dmsetup | destroy labelclear remove detach rollback delete remove_all wipe_table
overwrites_disk | cryptsetup | luksFormat luksErase erase luksKillSlot luksRemoveKey reencrypt
overwrites_disk | mdadm | --zero-superblock --stop --remove --fail --create -S
overwrites_disk | losetup umount swapoff | -D --detach-all -a
destroys_for_good | shred srm truncate rimraf del-cli | *
becomes_administrator | su | * | -c --command
power | shutdown reboot halt poweroff telinit | * | -c --show
power | init | 0 1 6
accounts | userdel groupdel deluser delgroup passwd chpasswd usermod visudo vipw | *
system_setting | insmod modprobe rmmod kexec | *
system_setting | iptables ip6tables pfctl auditctl | -F --flush -X -D -P -d
system_setting | nft ufw ip tmutil csrutil setenforce | flush delete disable reset del 0 Permissive
system_setting | firewall-cmd spctl journalctl | --panic-on --master-disable --rotate --vacuum-time --vacuum-size
system_setting | crontab history sysctl | -r -c -w --write -p
stops_service | systemctl launchctl sv service rc-service | stop disable mask kill poweroff reboot halt suspend
  hibernate kexec isolate rescue emergency unload bootout remove
kills_all | killall5 | *
kills_all | killall pkill | -u -U --euid --uid -v --inverse . .* *
container_destroys | docker podman nerdctl | prune volume+rm network+rm stack+rm service+rm node+rm secret+rm
  config+rm context+rm plugin+rm machine+rm volume+remove machine+reset swarm+leave system+reset
container_destroys | docker podman nerdctl | rm+-f rm+--force rm+-v rm+--volumes rmi+-f rmi+--force kill+-a compose+-v
  compose+--volumes compose+--rmi
container_destroys | docker-compose podman-compose | down+-v down+--volumes down+--rmi rm+-v
mirror_deletes | rsync | --delete --del --delete-before --delete-after --delete-during --delete-excluded
  --remove-source-files --force | -n --list-only
mirror_deletes | tar | --remove-files --recursive-unlink
database | dropdb dropuser | *
database | pg_restore mongorestore | -c --clean --drop
database | mysqladmin | drop shutdown
git_discards | git checkout | -f --force --pathspec-from-file --ours --theirs
git_discards | git switch checkout-index | -f --force --discard-changes
git_discards | git restore | * | -S --staged
git_discards | git restore | -W --worktree
git_discards | git reset | --hard --merge --HARD
git_discards | git rm | -f --force | -n --cached
git_discards | git submodule | deinit+-f deinit+--force deinit+--all
git_discards | git read-tree | -u --reset
git_deletes_untracked | git clean | -f --force | -n
git_force_push | git push | -f --force --mirror --prune | -n
git_deletes_remote | git push | -d --delete | -n
git_deletes | git branch | -D -d+-f --delete+--force -d+--force --delete+-f
git_rewrites | git branch | -f --force
git_rewrites | git filter-branch filter-repo | *
git_deletes | git stash | drop clear
git_deletes | git worktree | remove+-f remove+--force
git_deletes | git reflog | expire delete drop
git_deletes | git gc | --prune | -n
git_deletes | git prune | * | -n
git_deletes | git update-ref tag | -d --delete --stdin
git_deletes | git remote | remove rm prune
"""
VALUES = {"git checkout": "bB", "git switch": "cC", "git branch": "u", "git push": "o", "git clean": "e"}
"""Letters of options with a value, which may be attached to them: `-bfeature` names a branch and forces nothing."""
ONLY_TELLS = frozenset(("--help", "--version", "--dry-run", "--dryrun"))
NOTHING = names("git_force_push git_deletes_remote git_deletes_untracked kills_all becomes_administrator")
NEEDS = {"git_deletes": "what", "mirror_deletes": "program option", "database": "statement"}


@dataclass(frozen=True, slots=True)
class Danger:
    """One row of the table of dangerous programs."""

    reason: str
    words: tuple[tuple[str, ...], ...]
    unless: tuple[str, ...]


def _read_table() -> dict[str, list[Danger]]:
    rows = dict[str, list[Danger]]()
    for line in re.sub(r"\n +", " ", TABLE).strip().splitlines():
        reason, programs, words, *unless = (cell.strip() for cell in line.split("|"))
        row = Danger(reason, tuple(tuple(word.split("+")) for word in words.split()), tuple(" ".join(unless).split()))
        git = programs.startswith("git ")
        for program in programs.removeprefix("git ").split():
            rows.setdefault(f"git {program}" if git else program, []).append(row)
    return rows


DANGERS = _read_table()


def judge_by_table(call: Call, _: Scene) -> Iterator[CommandFinding]:
    rows = DANGERS.get("mkfs" if call.program.startswith("mkfs") else call.program)
    if not rows or not ONLY_TELLS.isdisjoint(call.texts):
        return
    options = read_options(call.arguments, VALUES.get(call.program, ""))
    for danger_row in rows:
        if any(_has(call, options, (word,)) for word in danger_row.unless):
            continue
        matched_words = next((words for words in danger_row.words if _has(call, options, words)), None)
        if matched_words:
            yield danger(danger_row.reason, **_values(danger_row.reason, call, " ".join(matched_words)))


def _has(call: Call, options: Options, words: tuple[str, ...]) -> bool:
    """Says whether the call has every word: each option among its options, and each other word among its first two
    plain words."""
    return all(
        word == "*" or (options.has(word) if word.startswith("-") else word in call.plain_words[:2]) for word in words
    )


def _values(reason: str, call: Call, matched: str) -> dict[str, str]:
    """Returns the values that are filled into the sentence for this reason."""
    subcommand = call.program.removeprefix("git ")
    subject = {"gc": "objects", "prune": "objects", "update-ref": "ref"}.get(subcommand, subcommand)
    values = {"program": call.program, "what": subject, "action": matched, "option": matched, "statement": call.program}
    if subcommand != call.program:
        values["action"] = subcommand
    needed_names = NEEDS.get(reason, "action" if reason.startswith("git_") else "program action")
    return {} if reason in NOTHING else {name: values[name] for name in needed_names.split()}
