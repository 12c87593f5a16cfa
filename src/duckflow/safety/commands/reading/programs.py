"""Programs that only read, with the options that would make them write or run something."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reader:
    """Which options and operands leave a program harmless."""

    letters: str = ""
    """Short options it is known to have; empty: all of them are harmless."""
    never: tuple[str, ...] = ()
    """Options that make it write, run something, or use up the machine."""
    with_value: str = ""
    long_with_value: tuple[str, ...] = ()
    least: int = 0
    """Operands it needs when nothing is piped in; with less it would wait, or do something else."""
    most: int | None = None
    instead: tuple[str, ...] = ()
    """Options that stand in for the operands."""
    operand_last: bool = False
    """What follows the operand is taken for a file to write, even if it looks like an option."""


PLAIN = Reader()
DIGITS = "0123456789"

HARMLESS = (
    ("tac", "paste", "tr", "comm", "join", "fold", "fmt", "expand", "unexpand", "od", "hexdump", "strings", "rev")
    + ("md5sum", "md5", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "shasum", "b2sum", "cksum")
    + ("sum", "cmp", "diff", "dir", "vdir", "stat", "du", "df", "echo", "basename", "dirname", "realpath", "readlink")
    + ("whereis", "type", "whoami", "id", "groups", "users", "who", "uptime", "uname", "arch", "nproc", "lscpu")
    + ("lsblk", "free", "ps", "pgrep", "true", "false", "test", "[", ":", "seq", "sleep", "expr", "getconf", "locale")
    + ("zgrep", "zcat", "numfmt", "factor", "tsort", "cal", "colrm", "readelf", "eza", "exa", "tty", "sw_vers")
    + ("vm_stat", "logname", "hostid", "lsusb", "lspci", "getent", "pathchk", "dpkg-query")
)
LOADS_PLUGINS = Reader(never=("--plugin",))
GREP = Reader(
    "abcdeEfFGhHiIlLmnoPqrRsTuUvVwxyzZABC" + DIGITS,
    with_value="efmABCdD",
    long_with_value=("--regexp", "--file", "--max-count", "--context", "--include", "--exclude", "--exclude-dir"),
    least=1,
    instead=("-e", "-f", "--regexp", "--file"),
)
RG_VALUES = (
    ("--glob", "--iglob", "--type", "--type-not", "--regexp", "--file", "--max-depth", "--max-count", "--after-context")
    + ("--before-context", "--context", "--color", "--colors", "--sort", "--sortr", "--max-columns", "--encoding")
    + ("--threads", "--replace", "--engine", "--path-separator", "--max-filesize", "--ignore-file", "--type-add")
)

READERS: dict[str, Reader] = dict.fromkeys(HARMLESS, PLAIN) | {
    "cat": Reader("AbeEnstTuv", least=1),
    "head": Reader("cnqvz" + DIGITS, with_value="cn", least=1),
    "tail": Reader("bcfFnqrsvz" + DIGITS, with_value="bcns", least=1),
    "wc": Reader("clLmw"),
    "nl": Reader("bdfhilnpsvw", with_value="bdfhilnsvw", least=1),
    "cut": Reader("bcdfnsz", with_value="bcdf"),
    "ls": Reader("aAbBcCdDfFgGhHiIklLmnNopqQrRsStTuUvwxXZ1"),
    "pwd": Reader("LP", most=0),
    "which": Reader("asv", least=1),
    "printenv": Reader("0", least=1, most=1),
    "grep": GREP,
    "egrep": GREP,
    "fgrep": GREP,
    "jq": Reader(least=1),
    "sort": Reader(
        "bcCdfghikmMnRrstuVz",
        ("-o", "--output", "--compress-program", "-T", "--temporary-directory", "-S", "--buffer-size", "--parallel")
        + ("--batch-size",),
        "kStTo",
    ),
    "uniq": Reader("cdDfiswuz", with_value="fsw", most=1, operand_last=True),
    "column": Reader("tsnxeJNRHO", with_value="sNRHO"),
    "shuf": Reader("einrz", ("-o", "--output"), "nio"),
    "xxd": Reader("abcdeEgilopsuv", ("-r", "-revert", "--revert"), "clgso", most=1, operand_last=True),
    "base64": Reader("bdiw", ("-o", "--output", "-D"), "wib"),
    "base32": Reader("diw", ("-o", "--output"), "w"),
    "tree": Reader("adfilpsughDFLPICAnrtvxqNQSUcJX", ("-o", "-R", "--output"), "LPI"),
    "file": Reader(
        "bhiklLnNprsveFf0", ("-C", "--compile", "-z", "-Z", "--uncompress", "-S", "--no-sandbox"), "eFf", least=1
    ),
    "hostname": Reader("fsidAIy", ("-F", "--file", "-b", "--boot"), most=0),
    "printf": Reader("", ("-v",), "v", least=1),
    "rg": Reader(
        "abcefFgHhijlLmMnNopPqrsStTuUvVwxABCE0." + DIGITS,
        ("--pre", "--hostname-bin", "-z", "--search-zip", "--pre-glob"),
        "efgtTABCmMjrEd",
        RG_VALUES,
        1,
        instead=("-e", "-f", "--regexp", "--file", "--files", "--type-list"),
    ),
    "fd": Reader("HIuspaLdeEtcSjgFli0", ("-x", "--exec", "-X", "--exec-batch"), "deEtcSjxX"),
    "fdfind": Reader("HIuspaLdeEtcSjgFli0", ("-x", "--exec", "-X", "--exec-batch"), "deEtcSjxX"),
    "cd": Reader("LPe", most=1),
    "yq": Reader("", ("-i", "--inplace", "-s", "--split-exp")),
    "ss": Reader("hVnrlaoempiszZtuwxd460O", ("-K", "--kill", "-D", "--diag"), "fAFD"),
    "hash": Reader("t", most=0),
    "nm": LOADS_PLUGINS,
    "size": LOADS_PLUGINS,
    "objdump": LOADS_PLUGINS,
}
