"""Everything that is said about one call: which rules look at which program."""

from collections.abc import Iterator

from duckflow.safety.commands.invocation import Invocation
from duckflow.safety.commands.opinion import Opinion, Rule, RunsText
from duckflow.safety.commands.reading.doubts import doubts
from duckflow.safety.commands.reading.editing import judge_awk, judge_find, judge_sed
from duckflow.safety.commands.reading.programs import READERS
from duckflow.safety.commands.reading.versions import tells_version
from duckflow.safety.commands.redirections import judge_redirects
from duckflow.safety.commands.rules import (
    containers,
    copying,
    databases,
    deleting,
    disks,
    frameworks,
    http,
    network,
    packages,
    services,
    system,
)
from duckflow.safety.commands.rules.git import judge_git
from duckflow.safety.commands.rules.service_names import is_service
from duckflow.safety.commands.targets import BROAD, target_of
from duckflow.safety.commands.text.options import read_options
from duckflow.safety.commands.unwrap import administrator, handed_on, shells
from duckflow.safety.commands.unwrap.interpreters import CODE_LETTERS, judge_interpreter
from duckflow.safety.commands.unwrap.running import RUNNING, judge_java, judge_running
from duckflow.safety.commands.unwrap.variables import judge_assignments, unwrap_env
from duckflow.safety.commands.unwrap.wrappers import is_wrapper, unwrap
from duckflow.safety.commands.verdict import ask, danger

INSTEAD: dict[str, Rule] = {
    "env": unwrap_env,
    "xargs": handed_on.unwrap_xargs,
    "gxargs": handed_on.unwrap_xargs,
    "parallel": handed_on.unwrap_parallel,
    "su": administrator.judge_su,
    "ssh": administrator.unwrap_remote,
    "mosh": administrator.unwrap_remote,
    **dict.fromkeys(administrator.ADMINISTRATORS, administrator.unwrap_administrator),
    "eval": shells.judge_eval,
    "source": shells.judge_source,
    ".": shells.judge_source,
    "trap": shells.judge_trap,
    "at": shells.judge_fed,
    "batch": shells.judge_fed,
    **dict.fromkeys(shells.SHELLS, shells.judge_shell),
    "java": judge_java,
}
"""Programs that are nothing but what they run."""

BESIDES: dict[str, tuple[Rule, ...]] = {
    "rm": (deleting.judge_rm,),
    "grm": (deleting.judge_rm,),
    "rmdir": (deleting.judge_rm,),
    "unlink": (deleting.judge_rm,),
    "rimraf": (deleting.judge_deleter,),
    "del-cli": (deleting.judge_deleter,),
    "shred": (deleting.judge_shred,),
    "srm": (deleting.judge_shred,),
    "truncate": (deleting.judge_truncate,),
    "mv": (deleting.judge_move,),
    "cp": (deleting.judge_move,),
    "ln": (deleting.judge_move,),
    "install": (deleting.judge_move,),
    "tee": (deleting.judge_writer,),
    "touch": (deleting.judge_writer,),
    "sponge": (deleting.judge_writer,),
    "dd": (disks.judge_dd,),
    "init": (system.judge_power,),
    "systemctl": (system.judge_service,),
    "service": (system.judge_service,),
    "launchctl": (system.judge_service,),
    "sv": (system.judge_service,),
    "rc-service": (system.judge_service,),
    "kill": (system.judge_kill,),
    "killall": (system.judge_kill,),
    "killall5": (system.judge_kill,),
    "pkill": (system.judge_kill,),
    "chmod": (system.judge_rights,),
    "chown": (system.judge_rights,),
    "chgrp": (system.judge_rights,),
    "setfacl": (system.judge_rights,),
    "rsync": (copying.judge_rsync, http.judge_sending),
    "scp": (http.judge_sending,),
    "sftp": (http.judge_sending,),
    "ftp": (http.judge_sending,),
    "tar": (copying.judge_archive,),
    "git": (judge_git,),
    "curl": (http.judge_request,),
    "wget": (http.judge_request,),
    "http": (http.judge_request,),
    "https": (http.judge_request,),
    "xh": (http.judge_request,),
    "gh": (http.judge_request,),
    "nc": (network.judge_netcat,),
    "ncat": (network.judge_netcat,),
    "netcat": (network.judge_netcat,),
    "socat": (network.judge_socat,),
    "find": (judge_find,),
    "gfind": (judge_find,),
    "sed": (judge_sed,),
    "gsed": (judge_sed,),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), (judge_awk,)),
    **dict.fromkeys(CODE_LETTERS, (judge_interpreter,)),
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose", "podman-compose"), (containers.judge_container,)),
    **dict.fromkeys(databases.CLIENTS, (databases.judge_database,)),
    **dict.fromkeys(databases.DROPS, (databases.judge_database_tool,)),
    **dict.fromkeys(system.SETTINGS, (system.judge_system_option,)),
}
EVERYWHERE: tuple[Rule, ...] = (
    disks.judge_disk,
    system.judge_power,
    system.judge_account,
    packages.judge_packages,
    network.judge_sockets,
)


def opinions(call: Invocation) -> Iterator[Opinion]:
    yield from judge_redirects(call)
    yield from judge_assignments(call.assignments)
    if not call.words or tells_version(call):
        return
    if not call.words[0].known:
        yield from _judge_made_name(call)
    elif call.texts == ("--help",):
        yield ask("unknown_program", program=call.program)
    elif call.program in INSTEAD:
        yield from INSTEAD[call.program](call)
    else:
        if call.program in RUNNING:
            yield from judge_running(call)
        yield from unwrap(call) if is_wrapper(call) else _judge_program(call)


def _judge_program(call: Invocation) -> Iterator[Opinion]:
    if "/" in call.words[0].text:
        yield from _judge_file(call)
    for rule in (*BESIDES.get(call.program, ()), *EVERYWHERE):
        yield from rule(call)
    if call.program in frameworks.RUNNERS:
        yield from frameworks.judge_task(call)
    if is_service(call.program):
        yield from services.judge_service_call(call)
    elif call.program not in BESIDES and call.program not in READERS:
        yield from services.judge_unknown(call)
    if call.program == "alias":
        for word in call.arguments:
            yield RunsText(word.text.partition("=")[2])
    yield from doubts(call)


def _judge_file(call: Invocation) -> Iterator[Opinion]:
    """A program given by its path may be what the same text has just fetched or written."""
    name = call.words[0].text.removeprefix("./")
    if name in call.scene.downloaded or name in call.scene.written:
        yield from shells.judge_script(call, call.words[0])


def _judge_made_name(call: Invocation) -> Iterator[Opinion]:
    """The program's name is made at run time."""
    yield ask("program_at_run_time", word=call.words[0].text)
    yield from shells.judge_programs(call.words[0].origins)
    options = read_options(call.arguments)
    if options.has("-r", "-R", "--recursive") and options.has("-f", "--force"):
        for word in options.operands:
            if target_of(word, call.scene) in BROAD:
                yield danger("deletes_broad", path=word.text)
