"""The running system: power, processes, rights, services, accounts, traces."""

import re
from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.targets import Target, target_of
from duckflow.safety.commands.text.options import read_options
from duckflow.safety.commands.verdict import CommandFinding, danger

OPEN_TO_ALL = re.compile(r"^0?[0-7]?[0-7][0-7][2367]$|^[ugo]*a[ugo]*[+=]\w*w|^[ugoa]*o[ugoa]*[+=]\w*w|^\+\w*w|^=\w*w")
RUNS_AS_OWNER = re.compile(r"^[2467]\d{3}$|^[ugoa]*[+=]\w*s")
LOCKS_OUT = re.compile(r"^0{1,4}$|^a?-\w*r")
KERNEL = frozenset(("insmod", "modprobe", "rmmod", "kexec"))
POWER = frozenset(("shutdown", "reboot", "halt", "poweroff", "telinit"))
STOPS = frozenset(
    ("stop", "disable", "mask", "kill", "poweroff", "reboot", "halt", "suspend", "hibernate", "kexec", "isolate")
    + ("rescue", "emergency", "unload", "bootout", "remove")
)
ACTION_FIRST = ("systemctl", "launchctl", "sv")
ACCOUNTS = frozenset(("userdel", "groupdel", "deluser", "delgroup", "passwd", "chpasswd", "usermod", "visudo", "vipw"))
SETTINGS = {
    "iptables": ("-F", "--flush", "-X", "-D", "-P"),
    "ip6tables": ("-F", "--flush", "-X", "-D", "-P"),
    "nft": ("flush", "delete"),
    "ufw": ("disable", "reset", "delete"),
    "firewall-cmd": ("--panic-on",),
    "setenforce": ("0", "Permissive"),
    "pfctl": ("-d", "-F"),
    "ip": ("flush", "delete", "del"),
    "crontab": ("-r", "-ri", "-ir"),
    "history": ("-c", "-cw", "-w"),
    "sysctl": ("-w", "--write", "-p"),
    "csrutil": ("disable",),
    "spctl": ("--master-disable",),
    "tmutil": ("delete", "disable"),
    "auditctl": ("-D",),
    "journalctl": ("--rotate", "--vacuum-time", "--vacuum-size"),
}
EVERYTHING = frozenset((".", ".*", "*"))
BY_OWNER = frozenset(("-u", "-U", "--euid", "--uid", "-v", "--inverse"))
SIGNALS = re.compile(r"^-(?:\d+|[A-Z]+\d?|s|n|l)$")


def judge_power(call: Invocation) -> Iterator[CommandFinding]:
    if call.program in POWER and not any(text in ("--help", "-c", "--show") for text in call.texts):
        yield danger("power", program=call.program)
    if call.program == "init" and call.texts[:1] in (("0",), ("6",), ("1",)):
        yield danger("power", program=call.program)


def judge_service(call: Invocation) -> Iterator[CommandFinding]:
    """The action comes first for systemctl and launchctl, after the name for service."""
    words = [text for text in call.texts if not text.startswith("-")]
    for word in words[:1] if call.program in ACTION_FIRST else words[1:2]:
        if word in STOPS:
            yield danger("stops_service", program=call.program, action=word)


def judge_account(call: Invocation) -> Iterator[CommandFinding]:
    if call.program in ACCOUNTS:
        yield danger("accounts", program=call.program)
    if call.program in KERNEL:
        yield danger("system_setting", program=call.program)


def judge_system_option(call: Invocation) -> Iterator[CommandFinding]:
    for option in SETTINGS[call.program]:
        if any(text == option or (len(option) > 2 and text.startswith(f"{option}=")) for text in call.texts):
            yield danger("system_setting", program=f"{call.program} {option}")


def judge_kill(call: Invocation) -> Iterator[CommandFinding]:
    """Everything at once, or the first process."""
    names = [text for text in call.texts if not SIGNALS.match(text)]
    after = call.texts[1:]
    if ("-1" in after and call.program == "kill") or "1" in names:
        yield danger("kills_all")
    if call.program in ("killall", "pkill", "killall5") and (
        call.program == "killall5" or not EVERYTHING.isdisjoint(names) or not BY_OWNER.isdisjoint(call.texts)
    ):
        yield danger("kills_all")


def judge_rights(call: Invocation) -> Iterator[CommandFinding]:
    """chmod, chown, chgrp: everything below a broad place, or open to everybody."""
    options = read_options(call.arguments, "", ("--reference",))
    recursive = options.has("-R", "--recursive")
    removed = [text for text in call.texts if re.match(r"^-[rwxst]+$", text) and "R" not in text]
    operands = options.operands
    modes, targets = (operands[:1], operands[1:]) if not removed else ((), operands)
    mode = modes[0].text if modes else ""
    is_mode = call.program == "chmod"
    if is_mode and recursive and (OPEN_TO_ALL.match(mode) or LOCKS_OUT.match(mode)):
        yield danger("opens_to_all", path=targets[0].text if targets else "")
    if call.program == "chown" and mode.partition(":")[0] in ("root", "0"):
        yield danger("rights", program=call.program, path=targets[0].text if targets else "")
    if is_mode and RUNS_AS_OWNER.match(mode):
        yield danger("runs_as_owner", path=targets[0].text if targets else "")
    for word in targets:
        target = target_of(word, call.scene)
        if target in (Target.ROOT, Target.HOME, Target.SYSTEM, Target.DEVICE) or (
            recursive and target in (Target.OUTSIDE, Target.UNKNOWN)
        ):
            yield danger("rights", program=call.program, path=word.text)
