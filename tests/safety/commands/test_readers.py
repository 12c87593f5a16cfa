"""Programs that read, and the options with which they do more."""

import pytest

from duckflow.safety.commands.judge import judge_command
from duckflow.safety.commands.paths import CommandFacts


@pytest.mark.parametrize(
    "command",
    [
        "sort -o out.txt in.txt",
        "sort --outp=out.txt in.txt",
        "sort -no out.txt in.txt",
        "sort --compress-prog=sh in.txt",
        "sort -S 100G in.txt",
        "uniq in.txt out.txt",
        "xxd -r in.hex out.bin",
        "xxd in.bin out.hex",
        "xxd in.bin -a",
        "uniq in.txt -c",
        "[ a > b ]",
        "base64 -o out.txt in.txt",
        "tree -o out.txt",
        "file -C -m magic",
        "date -s tomorrow",
        "date 010100002030",
        "hostname lake",
        "hash -p /tmp/evil ls",
        "nm --plugin=evil.so a.out",
        "rg --pre cat x",
        "rg -z x",
        "rg -nz x",
        "rg --hostname-bin=evil x",
        "fd . -x cat",
        "fd . -Hx cat",
        "yq -i '.a = 1' a.yml",
        "find . -fprint out.txt",
        "find . -exec cat {} \\;",
        "find . -ok cat {} \\;",
        "sed -i s/a/b/ a.txt",
        "sed -ni p a.txt",
        "sed -Ibak s/a/b/ a.txt",
        "sed 's/a/b/w out.txt' a.txt",
        "sed 's/a/b/e' a.txt",
        "sed -n '1w out.txt' a.txt",
        "sed '1r other.txt' a.txt",
        "sed -f script.sed a.txt",
        "awk '{print > \"out.txt\"}' a.txt",
        "awk '{print | \"sort\"}' a.txt",
        "awk 'BEGIN {system(\"ls\")}'",
        "awk 'BEGIN {\"ls\" | getline x}'",
        "awk -f script.awk a.txt",
        "gawk -i inplace '{print}' a.txt",
        "find . -{delete,print}",
        "find . -delet[e]",
        "rg --pre{=,=sh} pattern",
        'find . "-de\\\nlete"',
        "/tmp/evil/ls",
        "yarn --version",
        "cargo --version",
        "head",
        "grep",
        "ls -l > listing.txt",
        "ls >| listing.txt",
        "ls >& listing.txt",
        "ls 2> errors.txt",
        "cat < ~/.netrc",
    ],
)
def test_a_reader_that_writes_or_runs_something_is_not_safe(command: str) -> None:
    assert judge_command(command).verdict != "safe"


@pytest.mark.parametrize(
    "command",
    [
        "sort -k2 -n in.txt",
        "sort -t: -k3 in.txt",
        "uniq -c in.txt",
        "echo -e -e quack",
        "[ -f 'a b' ] && ls",
        "xxd in.bin | head",
        "base64 in.txt",
        "tree -L 2 src",
        "file in.bin",
        "date",
        "date -u +%Y-%m-%d",
        "hostname",
        "rg -i --color=never quack src",
        "rg --files src",
        "fd -H -t f duck",
        "yq '.a' a.yml",
        "nl -ba a.py | sed -n '1,5p'",
        "sed -n -E '/def/p' a.py",
        "sed '/^$/d;s/a/b/' a.py",
        "cut -d: -f1 a.txt",
        "tr a-z A-Z",
        "stat a.txt",
        "du -sh .",
        "diff a.txt b.txt",
        "ps aux",
        "basename /some/where",
        "node -v",
        "numfmt --to=iec 1000",
        "comm -12 a.txt b.txt",
        "join -t , -1 2 a.txt b.txt",
        "fold -s -w 80 a.txt",
        "hexdump -C a.bin",
        "nm -C a.out",
        "free -h",
        "pr -3 a.txt",
        "sha256sum -c sums.txt",
        "cd /somewhere/else",
        "cd ..",
    ],
)
def test_the_same_readers_are_safe_otherwise(command: str) -> None:
    verdict = judge_command(command)
    assert verdict.verdict == "safe", verdict.reasons


RUNS_CODE_OR_LEAVES_THE_FOLDER = r"""
[[ x -eq 1 ]]
[[ 'a[$(id)]' -eq 0 ]]
(( x ))
(( a[$(id)] ))
echo $((1+1))
echo $(( a[$(id)] ))
test -v 'a[$(id)]'
[ -v 'a[$(id)]' ]
test -R x
printf -v x a
printf -vx a
printf '%n' 'a[$(id)]'
printf '%d %n' 1 x
a[$(id)]=1
let x=1
declare x=1
read x
cat <(ls)
ls > >(cat)
git st
git quack
git -c core.pager=x log
git -p log
git --paginate log
git diff --ext-diff
git log --textconv
git grep -O x
git grep -Oless x
git grep --open x
git ls-remote --upload-pack=x .
git fetch
git log --help
git help log
git log --format=%G?
git log --output=x
git diff --no-index /etc/passwd a
git diff /etc/passwd a
git show HEAD:.env
git config --list --add x
git log -Ofile
git branch x
git tag x
git stash
git blame --contents /etc/passwd a
git grep -f /etc/passwd
git ls-files -X /etc/passwd
git -C .. log
git --git-dir=x log
git submodule status
git log --show-signature
rg --pre x y
rg --pre=x y
rg -z x
rg --hostname-bin=x y
rg -f /etc/passwd
fd -x rm
fd -l x
fd . --exec rm
find . -exec ls {} \;
find . -delete
find . -fprint x
find . -fprintf x y
find . -files0-from x
find / -name x
sort -o x y
sort --compress-program=x y
sort -T/tmp x
sort --files0-from=x
awk '{print > "x"}' a
awk '{print | "x"}' a
awk 'BEGIN{system("x")}'
awk '{getline x < "/etc/passwd"}' a
awk 'BEGIN{ARGV[1]="/etc/passwd";ARGC=2}{print}'
awk -f x a
gawk -i inplace 1 a
gawk -o x 1 a
sed -i s/a/b/ a
sed 's/a/b/w x' a
sed '1e id' a
sed -n '/x/w out' a
sed -f x a
sed --expression='w x' a
sed -s -i p a
less a
man ls
vim a
more a
tar --to-command=x -xf a
tar tf a
env
env ls
time ls
timeout 5 ls
grep -f /etc/passwd x
grep -f/etc/passwd x
grep --file=/etc/passwd x
grep x /etc/passwd
cat /etc/passwd
cat ../x
cat sub/../../x
cat ~/x
cat .env
cat .env.local
cat id_rsa
cat sub/.env
grep KEY .env
head -n5 .env
cat secrets.json
cat < .env
cat < /etc/passwd
wc -l < ../x
cat a > b
cat a <> b
ls >& x
ls 2>x
xxd -r a b
xxd -ps a b
xxd a b
uniq a b
tree -o x
file -C -m x
file -z x
file -p x
date -s x
date 01010000
date -f /etc/passwd
hostname x
hostname -F x
ps auxe
ps e
jq env a
jq '$ENV' a
jq 'import "x" as x; .' a
jq -f /etc/passwd a
jq --rawfile a /etc/passwd .
yq -i x a
yq -s x a
yq 'load("/etc/passwd")' a
diff -l a b
du --files0-from=x
ls *.py
ls $x
ls {a,b}
cat $'a'
cat "$x"
ls `x`
ls; x=1 ls
exec ls
command ls
builtin cd x
. x
source x
type -f x; y
coproc ls
! ls
ls &
(ls)
{ ls; }
if true; then ls; fi
xargs cat
ls | xargs cat
ls | tee x
ls -la | sh
printenv API_KEY
nm --plugin=x y
lsblk --sysroot x
hexdump -f format a
jq --arg x 1 env
pr /etc/passwd
numfmt < /etc/passwd
cd / && head etc/passwd
cd ..; test -f x
getent hosts x
curl x
wget x
nc x 1
cd ..; ls
cd / && ls
cd -; ls
cd; ls
cd sub && git status
realpath /etc
stat -f /etc/passwd
od -w /etc/passwd
ls /
ls ~
tail -f /var/log/x
tail --retry -f ../x
cat a\ b/../../x
cat "a"/../../x
cat --number /etc/passwd
cat -- /etc/passwd
cat -- -x ../y
head -c 5 -- ../x
"""


@pytest.mark.parametrize("command", RUNS_CODE_OR_LEAVES_THE_FOLDER.strip().split("\n"))
def test_reading_that_runs_code_writes_or_leaves_the_folder_is_asked_about(command: str) -> None:
    """Arithmetic and subscripts run the code in them, git runs pagers and aliases, options name programs and files."""
    facts = CommandFacts(folder="/work/pond", home="/home/duck", git_runs_programs=False)
    assert judge_command(command, facts).verdict != "safe"
