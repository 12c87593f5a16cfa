"""The table of readers: programs that only read, with the options that keep them so. Before any other program runs, the
user is asked.

A row: programs | options | limits. Options are named one by one: letters without a value, `n:` with a text as value,
`f@` with a path as value that is checked like an operand, `p~` with a value that only switches something off
(`no:cacheprovider`), and the same for long ones (`--lines:`); `0-9` means the digits.
Limits: `text`: operands are texts and no files. `pattern`: the first operand is a pattern, unless an option of
`instead` is given. `least` and `most`: the number of operands (with fewer the program waits for input). `listing`:
operands are allowed only with one of these options, which say what to list. `match`: operands must match this
expression. `last`: the operand is the last word, since a word after it would be written to. `single`: options are whole
words with one dash. `any`: a word that looks like an option is a word like others."""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["flag", "text", "path", "off"]
MARKS: dict[str, Kind] = {":": "text", "@": "path", "~": "off"}
SWITCHED_OFF = "no:"
DIFF_OPTIONS = (
    "pusUwbazMCBDRrWi 0-9 U: S: G: --patch --no-patch --stat --numstat --shortstat --summary --name-only --name-status "
    "--color --no-color --color-words --word-diff --check --abbrev --find-renames --find-copies --cached --staged "
    "--merge-base --ignore-all-space --ignore-space-change --ignore-space-at-eol --ignore-blank-lines --diff-filter "
    "--no-renames --exit-code --quiet --unified --patience --histogram --diff-algorithm --raw --compact-summary "
    "--relative --text --function-context --no-ext-diff --no-textconv --no-prefix --pickaxe-regex --root "
    "--no-commit-id --cc --always --minimal --anchored --inter-hunk-context --dirstat --cumulative --dirstat-by-file "
    "--stat-width --stat-name-width --stat-count --full-index --binary --break-rewrites --find-copies-harder "
    "--find-object --pickaxe-all --irreversible-delete --color-moved --color-moved-ws --no-color-moved "
    "--ignore-cr-at-eol --ignore-matching-lines --ignore-submodules --indent-heuristic --src-prefix --dst-prefix "
    "--line-prefix --default-prefix --word-diff-regex --ws-error-highlight --rename-empty --no-rename-empty "
    "--no-relative --no-indent-heuristic --patch-with-stat --patch-with-raw --skip-to --rotate-to "
)
LOG_OPTIONS = (
    "qgcmtlEFP n: L: --oneline --graph --decorate --no-decorate --all --branches --tags --remotes --since --until "
    "--after --before --author --committer --grep --max-count --skip --follow --reverse --merges --no-merges "
    "--first-parent --pretty --format --date --abbrev-commit --topo-order --date-order --left-right --cherry-pick "
    "--boundary --regexp-ignore-case --extended-regexp --fixed-strings --not --no-walk --notes --no-notes --count "
    "--numbered --email --group --glob --exclude --min-parents --max-parents --all-match --invert-grep --source "
    "--simplify-by-decoration --simplify-merges --full-history --dense --sparse --ancestry-path --walk-reflogs "
    "--cherry --cherry-mark --left-only --right-only --children --parents --show-linear-break "
    "--encoding --expand-tabs --no-expand-tabs --no-abbrev-commit --relative-date --author-date-order --log-size "
    "--mailmap --no-mailmap --use-mailmap --decorate-refs --decorate-refs-exclude --clear-decorations "
    "--since-as-filter --grep-reflog --perl-regexp --basic-regexp "
    "--combined-all-paths --remove-empty --reflog --merge " + DIFF_OPTIONS
)
TABLE = r"""
cat | AbeEnstTuv --number --number-nonblank --show-all --squeeze-blank --show-ends --show-tabs --show-nonprinting |
  least=1
head | qvz 0-9 c: n: --lines: --bytes: --quiet --silent --verbose --zero-terminated | least=1
tail | fFqrvz 0-9 b: c: n: s: --lines: --bytes: --follow --quiet --silent --verbose --pid: --retry --sleep-interval:
  --zero-terminated | least=1
wc | clLmw --lines --words --bytes --chars --max-line-length
nl | p b: d: f: h: i: l: n: s: v: w: --body-numbering: --number-format: --number-width: --starting-line-number: |
  least=1
cut | nsz b: c: d: f: --delimiter: --fields: --characters: --bytes: --complement --output-delimiter: --only-delimited
  --zero-terminated
sort | bcCdfghiMmnRrsuVz k: t: --key: --field-separator: --numeric-sort --reverse --unique --ignore-case --stable
  --human-numeric-sort --version-sort --zero-terminated --check --general-numeric-sort --month-sort --random-sort
  --dictionary-order --ignore-leading-blanks --ignore-nonprinting --merge --sort: --debug
uniq | cdDiuz f: s: w: --count --repeated --unique --ignore-case --all-repeated --group --check-chars: --skip-chars:
  --skip-fields: --zero-terminated | most=1 last
column | tnxeJdL s: c: o: N: R: H: O: l: T: W: E: r: i: p: --table --separator: --output-separator: --json
  --output-width: --table-columns: --table-right: --table-hide: --table-order: --table-noheadings --table-truncate:
  --table-wrap:
shuf | erz n: i: --head-count: --input-range: --echo --repeat --zero-terminated
paste | sz d: --delimiters: --serial --zero-terminated
tr | cCdst --delete --squeeze-repeats --complement --truncate-set1 | text
rev, tsort, eza, exa |
tac | br s: --before --regex --separator:
comm | z 0-9 --check-order --nocheck-order --output-delimiter: --total --zero-terminated
join | iz 1: 2: a: e: j: o: t: v: --check-order --header --ignore-case --nocheck-order --zero-terminated
fold | bs 0-9 w: --bytes --spaces --width:
fmt | cstu 0-9 g: p: w: --crown-margin --goal: --prefix: --split-only --tagged-paragraph --uniform-spacing --width:
expand, unexpand | ai t: --all --first-only --initial --tabs:
hexdump | bcCdovx e: n: s: --canonical --length: --skip: --format: --no-squeezing
nm | aABCDgjlnoprsSuUP f: t: --debug-syms --defined-only --demangle --dynamic --extern-only --format: --just-symbols
  --line-numbers --no-sort --numeric-sort --print-file-name --print-size --radix: --reverse-sort --size-sort
  --undefined-only
size | ABGdoxt --common --format: --radix: --totals
who | abdHlmpqrstTuw --all --boot --count --heading --ips --login --message --process --runlevel --short --time
  --users
od | abcdfilosxvw 0-9 A: t: N: j: S: --address-radix: --endian: --format: --output-duplicates --read-bytes:
  --skip-bytes: --width
xxd | a b e E i p u c: g: l: s: | most=1 last single
strings | afow 0-9 n: t: e: s: --all --bytes: --radix: --encoding: --print-file-name --include-all-whitespace
base64, base32 | di w: --decode --wrap: --ignore-garbage
md5sum, cksum, shasum, sha1sum, sha224sum, sha256sum, sha384sum, sha512sum, b2sum, sum | btzcwrs a: l: --tag --binary
  --text --zero --check --ignore-missing --quiet --status --strict --warn --algorithm: --length: | least=1
cmp | bls i: n: --ignore-initial: --silent --quiet --verbose --bytes: --print-bytes
diff | abBcdeEfiNpPqrstTuwy 0-9 U: C: L: I: x: W: F: --unified --brief --recursive --side-by-side --color --new-file
  --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-case --text --exclude: --width: --label:
  --suppress-common-lines --report-identical-files --strip-trailing-cr --context --normal --minimal --expand-tabs
  --initial-tab --ignore-trailing-space --ignore-tab-expansion --ignore-matching-lines: --left-column --no-dereference
  --show-c-function --show-function-line: --speed-large-files --tabsize:
ls, dir, vdir | aAbBcCdDfFgGhHiIklLmnNopqQrRsStTuUvwxXZ1 --all --almost-all --human-readable --recursive --reverse
  --sort --time --time-style: --group-directories-first --full-time --classify --directory --inode --size --color
  --ignore: --hide: --author --block-size: --context --dereference --escape --file-type --format: --hyperlink
  --ignore-backups --indicator-style: --kibibytes --literal --no-group --numeric-uid-gid --quote-name --quoting-style:
  --si --tabsize: --width: --zero
tree | adfilpsughDFACnrtvxqNQSUcJX L: P: I: --dirsfirst --noreport --gitignore --prune --charset: --filelimit: --du
  --si --sort --ignore-case --matchdirs
file | bhiklLnNrsv0 e: F: f@ --brief --mime --mime-type --mime-encoding --dereference --no-dereference --extension
  --keep-going --no-pad --raw --separator: --print0 | least=1
stat | Ltxr f@ c: --format: --printf: --terse --dereference --file-system
du | abcDhHklLmPsSx0 d: t: B: --max-depth: --exclude: --summarize --human-readable --apparent-size --total --all
  --bytes --si --one-file-system --block-size: --threshold: --count-links --dereference --inodes --null
  --separate-dirs --time --time-style:
df | ahHiklPT t: x: B: --human-readable --total --type: --output --inodes --print-type --local --all --block-size:
  --exclude-type: --no-sync --portability --si
basename | az s: --suffix: --multiple --zero | text
dirname | z --zero | text
realpath | emqszLP --relative-to@ --relative-base@ --canonicalize-existing --canonicalize-missing --no-symlinks
  --logical --physical --quiet --strip --zero
readlink | efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --silent
  --verbose --zero
pwd | LP --logical --physical | most=0
cd | LP | text most=1
which, type | afptP --all | text least=1
grep, egrep, fgrep | abcEFGhHiIlLnoPqrRsTuUvVwxyzZ 0-9 A: B: C: e: m: d: D: f@ --regexp: --file@ --max-count:
  --context --after-context --before-context --include: --exclude: --exclude-dir: --color --line-number --recursive
  --ignore-case --count --files-with-matches --files-without-match --with-filename --no-filename --only-matching
  --invert-match --word-regexp --extended-regexp --fixed-strings --perl-regexp --quiet --no-messages --text --null
  --basic-regexp --binary-files: --byte-offset --colour --dereference-recursive --directories: --devices:
  --exclude-from@ --group-separator: --initial-tab --label: --line-buffered --line-regexp --no-group-separator
  --no-ignore-case --null-data --silent | pattern least=1 instead=-e,-f,--regexp,--file
rg | abcFHhilLnNopPqsSuUvVwxI0. 0-9 e: g: t: T: A: B: C: m: M: j: r: E: d: f@ --glob: --iglob: --type: --type-not:
  --regexp: --file@ --max-depth: --max-count: --after-context: --before-context: --context: --color: --sort: --sortr:
  --max-columns: --encoding: --threads: --replace: --max-filesize: --ignore-file@ --files --type-list --hidden
  --no-ignore --no-ignore-vcs --ignore-case --smart-case --case-sensitive --line-number --no-line-number
  --with-filename --no-filename --heading --no-heading --count --files-with-matches --files-without-match
  --only-matching --invert-match --word-regexp --fixed-strings --multiline --pcre2 --json --vimgrep --stats --quiet
  --text --follow --column --no-messages --byte-offset --colors: --context-separator: --count-matches --crlf --engine:
  --glob-case-insensitive --include-zero --line-regexp --max-columns-preview --multiline-dotall --no-config
  --no-ignore-dot --no-ignore-parent --no-ignore-global --no-unicode --null --one-file-system --passthru
  --path-separator: --pretty --print0 --trim --type-add: --unrestricted --debug | pattern least=1
  instead=-e,-f,--regexp,--file,--files,--type-list
fd, fdfind | HIuspaLgFi0 d: e: E: t: c: S: j: --hidden --no-ignore --case-sensitive --ignore-case --glob --regex
  --fixed-strings --absolute-path --follow --full-path --print0 --max-depth: --min-depth: --exclude: --type:
  --extension: --size: --changed-within: --changed-before: --color: --max-results: | pattern
jq | rcnesSaCMjR --raw-output --raw-input --compact-output --null-input --slurp --sort-keys --exit-status --tab
  --indent: --join-output --ascii-output --color-output --monochrome-output --stream | pattern least=1
yq | rCMPen o: --unwrapScalar --output-format: --prettyPrint --no-colors --exit-status | pattern
echo, true, false, :, expr | | text any
printf | | text least=1
test | | any match=(?:[^-](?s:.*))?|-\d*|-[bcdefghkLnNoOpGrsStuwxza]|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef)
find, gfind | name: iname: path: ipath: wholename: iwholename: regex: iregex: type: xtype: size: mtime: mmin: atime:
  amin: ctime: cmin: user: group: uid: gid: perm: maxdepth: mindepth: printf: lname: ilname: links: inum: fstype:
  used: regextype: newer@ anewer@ cnewer@ samefile@ print print0 ls prune quit not a and o or empty follow depth d
  xdev mount true false readable writable executable nouser nogroup daystart noleaf H L P E | single
sed, gsed | nErsuz --quiet --silent --regexp-extended --null-data | pattern least=1
awk, gawk, mawk, nawk | F: v: --field-separator: --assign: | pattern least=1
command | vV | text listing=-v,-V least=1
printenv | 0 --null | text least=1 most=1
numfmt | d: z --from: --to: --from-unit: --to-unit: --field: --format: --padding: --suffix: --delimiter: --header
  --round: --invalid: --grouping | text
pr | 0-9 abdfFmtTJrv h: l: w: W: o: s: N: --columns: --length: --width: --header: --omit-header | least=1
factor, pathchk, hostid, users | | text
seq | w 0-9 f: s: --separator: --equal-width --format: | text
sleep, whoami, groups, arch, logname, sw_vers, vm_stat, getconf | | text
nproc | --all --ignore: | text
uptime | ps --pretty --since | text
tty | s --quiet --silent | text
free | bkmghtlwv --bytes --kibi --mebi --gibi --human --si --total --wide --lohi --committed | text
lsblk | aAbdDfiJlmMnNOpPrsStTz e: I: o: x: --all --bytes --fs --json --list --nodeps --noheadings --output:
  --output-all --paths --raw --topology --tree --sort:
lscpu | abcexyBCJ --all --bytes --caches --extended --hex --json --online --offline --physical | text
locale | ackm --all-locales --category-name --charmaps --keyword-name | text
id | agGnruzZ --user --group --groups --name --real --zero --context | text
uname | asnrvmpio --all --kernel-name --kernel-release --machine --operating-system --kernel-version --nodename
  --processor --hardware-platform | text
hostname | sfdiIA --short --fqdn --long --domain --ip-address --all-ip-addresses | most=0
ps | AaefFHjlLNTwy C: o: p: u: U: g: G: s: t: --sort: --forest --no-headers --pid: --ppid: --format: | text
  match=[aAxuwfjl]+|\d+
pgrep | acfilnovx d: u: U: g: G: P: s: t: --full --list-name --list-full --count --exact --parent: --newest --oldest
  --inverse --ignore-case --delimiter: --uid: --euid: --group: --session: --terminal: | text
date | uRI d: r@ --debug --resolution --date: --utc --universal --iso-8601 --rfc-3339 --rfc-email --reference@ | text
  match=\+.*
"""
GIT_TABLE = f"""
git log, git show, git whatchanged, git rev-list, git shortlog | {LOG_OPTIONS} sne
git diff, git diff-tree, git diff-index, git diff-files | {DIFF_OPTIONS} tmc
git status | sbuvznoal --short --branch --porcelain --long --untracked-files --ignored --ignore-submodules --renames
  --no-renames --show-stash --ahead-behind --no-ahead-behind --verbose
git rev-parse | q --show-toplevel --abbrev-ref --short --verify --git-dir --is-inside-work-tree --show-prefix --all
  --symbolic-full-name --branches --tags --remotes --git-common-dir --absolute-git-dir --quiet --is-bare-repository
git ls-files | cdomistuvzk x: --cached --deleted --others --modified --ignored --stage --exclude-standard --full-name
  --error-unmatch --unmerged --killed --directory --eol --deduplicate --exclude:
git ls-tree | drtlz --name-only --long --full-name --full-tree --abbrev --format --object-only --name-status
git cat-file | pets
git describe | --tags --all --long --always --dirty --abbrev --exact-match --contains --match: --exclude:
  --first-parent
git blame | wlsftenbpcMC L: --porcelain --line-porcelain --date --since --root --show-email --show-name
  --show-number --abbrev
git merge-base | a --all --is-ancestor --fork-point --octopus --independent
git for-each-ref | --format: --sort: --count --contains --merged --no-merged --points-at --ignore-case
git show-ref | dqhs --head --heads --tags --branches --verify --hash --dereference --quiet --abbrev --exists
git check-ignore | vnq --verbose --non-matching --quiet
git stash list, git reflog show | {LOG_OPTIONS}
git stash show | {DIFF_OPTIONS}
git worktree list | vz --verbose --porcelain
git remote get-url | --all --push
git config get | --all --show-origin --show-scope --local --global --system
git config list | zl --show-origin --show-scope --name-only --local --global --system
git grep | niIwvhHlLcpWEFGPqaz 0-9 A: B: C: e: m: --line-number --ignore-case --word-regexp --count --cached
  --untracked --files-with-matches --name-only --invert-match --extended-regexp --fixed-strings --perl-regexp
  --all-match --and --or --not --quiet --color --no-color --break --heading --show-function --function-context
  --max-depth | pattern instead=-e
git reflog | {LOG_OPTIONS} | most=0
git branch | avrqil --all --remotes --verbose --show-current --list --merged --no-merged --contains --no-contains
  --sort: --format: --color --no-color --points-at --column --no-column --ignore-case
  --quiet --abbrev | listing=-l,--list,--contains,--no-contains,--merged,--no-merged,--points-at
git tag | nil 0-9 --list --merged --no-merged --contains --no-contains --sort: --format: --color --no-color
  --points-at --column --no-column --ignore-case
  | listing=-l,--list,--contains,--no-contains,--merged,--no-merged,--points-at,-n
git remote | v --verbose | most=0
git config | lz --get --get-all --get-regexp --list --global --local --system --show-origin --show-scope --name-only
  --null | listing=-l,--list,--get,--get-all,--get-regexp
git | v --version | most=0
"""
VERSION_TABLE = """
npx, gem, javac, gcc, g++, clang, cmake, make, ninja, podman, aws, gcloud, bash, zsh, poetry, tsc, eslint, prettier,
  swift, julia, sqlite3, psql, mysql, rsync, tar, sed, awk, gawk, find, vim, nvim, emacs, brew, tree, perl, docker,
  kubectl, helm, deno, gh, java | --version
node, npm, ruby, php, bun, lua | v --version
python, pip, curl, wget, ssh, uv, ruff, mypy, tmux | V --version
"""
"""Well-known programs that are harmless when they are asked for nothing but their version.

Programs that run something of the work folder even then are left out: yarn, cargo, mvn, pytest, composer and others."""


@dataclass(frozen=True, slots=True)
class Reader:
    """One row of the table of programs that only read."""

    options: dict[str, Kind]
    """The options, such as `-n` or `--lines`, and the kind of value that each one takes."""
    limits: dict[str, str]

    def listed(self, limit: str) -> list[str]:
        return self.limits[limit].split(",") if limit in self.limits else []


def read_table(table: str) -> dict[str, Reader]:
    readers = dict[str, Reader]()
    for line in re.sub(r"\n +", " ", table).strip().splitlines():
        programs, option_list, *limit_cells = (cell.strip() for cell in line.split("|", 2))
        limits = {word.partition("=")[0]: word.partition("=")[2] for word in " ".join(limit_cells).split()}
        options = dict[str, Kind]()
        for token in option_list.split():
            name, kind = (token[:-1], MARKS[token[-1]]) if token[-1] in MARKS else (token, "flag")
            is_whole_name = name.startswith("--") or "single" in limits
            letters = [name] if is_whole_name else "0123456789" if name == "0-9" else name
            options |= {name if name.startswith("--") else f"-{letter.removeprefix('-')}": kind for letter in letters}
        readers.update((program, Reader(options, limits)) for program in programs.split(", "))
    return readers


READERS = read_table(TABLE)
GIT_READERS = read_table(GIT_TABLE)
VERSIONS = read_table(VERSION_TABLE)
