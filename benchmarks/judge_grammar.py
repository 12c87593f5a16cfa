"""A grammar of shell commands that read, nearly read, or only look as if they do. The fuzz of the judge uses it."""

import random
from collections.abc import Sequence

from duckflow.safety.commands.reader_programs import GIT_READERS, READERS


def _listed(text: str) -> list[str]:
    """Splits texts with a bar between them."""
    return [part.strip("\n") for part in text.replace("\n", " ¦ ").split(" ¦ ") if part]


FILES = _listed(r"""
a.txt ¦ b.txt ¦ sub ¦ sub/c.txt ¦ data.json ¦ a.yml ¦ names ¦ new ¦ new.txt ¦ sub/new ¦ . ¦ ./a.txt ¦ sub/../a.txt
- ¦ .git/config ¦ .gitignore
""")
BEYOND = _listed(r"""
.env ¦ ../outside/file.txt ¦ {top}/outside/file.txt ¦ sub/../../outside/file.txt ¦ ~/file.txt ¦ /etc/hostname
""")
TEXTS = _listed(r"""
1p ¦ s/a/b/ ¦ s/a/b/w new ¦ s/a/b/e ¦ 1w new ¦ 1e touch new ¦ /a/d;p ¦ r a.txt ¦ $p ¦ s|a|b|g;w new ¦ y/a/b/
{print} ¦ {print > "new"} ¦ BEGIN{system("touch new")} ¦ {print | "touch new"} ¦ $1>=1||$2==3{print $1}
BEGIN{ARGV[1]="../outside/file.txt";ARGC=2}{print} ¦ {"touch new"|getline x} ¦ @load "x" ¦ {print>"new"} ¦ .a ¦ .
$ENV ¦ env ¦ import "x" as x; . ¦ input ¦ %s ¦ %n ¦ %d%n ¦ %s\n ¦ %b ¦ %q ¦ %(%F)T ¦ %*d ¦ a ¦ a.*b
x[$(touch new)] ¦ x[`touch new`] ¦ a[0] ¦ HEAD ¦ HEAD~1 ¦ HEAD^ ¦ main ¦ HEAD:a.txt ¦ HEAD:.env ¦ *.txt ¦ -delete
-exec ¦ +%s ¦ 2 ¦ -1 ¦ 0 ¦ 1,2 ¦ x=1 ¦ PATH ¦ API_KEY ¦ aux ¦ a b ¦ -- ¦ -eq ¦ -v
""")
OPTIONS = _listed(r"""
-o ¦ -onew ¦ -no ¦ --output=new ¦ --outp=new ¦ --output ¦ -i ¦ -ni ¦ -i.bak ¦ --in-place ¦ -w ¦ -e ¦ -E
--compress-program=touch ¦ --compress-prog=touch ¦ -S1 ¦ -T ¦ -Tsub ¦ -C ¦ -m ¦ -z ¦ -x ¦ -X ¦ --pre=touch ¦ --exec
-exec touch new ; ¦ -exec touch new \; ¦ -execdir touch new {} + ¦ -ok touch new ; ¦ -delete ¦ -fprint new
-fls new ¦ -fprintf new x ¦ -fprint0 new ¦ -files0-from names ¦ -r ¦ -R ¦ -revert ¦ -ps ¦ -p ¦ -s ¦ -d ¦ -D
--set=tomorrow ¦ -s tomorrow ¦ -f names ¦ -f ../outside/file.txt ¦ -f../outside/file.txt ¦ -fnames ¦ --file=.env
-f script.sed ¦ --file=script.sed ¦ -v ¦ -v x ¦ -V ¦ -R x ¦ -n ¦ -nE ¦ -l ¦ -a ¦ -u ¦ -b ¦ -c ¦ -q ¦ -h ¦ --help
--version ¦ -version ¦ -P ¦ --files0-from=names ¦ --ext-diff ¦ --textconv ¦ --no-index ¦ --paginate ¦ -Otouch
--open-files-in-pager=touch ¦ --upload-pack=touch ¦ --exec=touch ¦ -c alias.x=!touch ¦ -O ¦ -L 1,1:a.txt
--show-signature ¦ --format=%G? ¦ --sort=x ¦ --filters ¦ --edit ¦ --add ¦ --unset ¦ --replace-all ¦ -d new ¦ -t
--to-command=touch ¦ --checkpoint-action=exec=touch ¦ --color=auto ¦ --stat ¦ --oneline ¦ -k2 ¦ -t: ¦ -F: ¦ -d:
""")
PROGRAMS = _listed(r"""
tee ¦ touch ¦ cp ¦ mv ¦ rm ¦ mkdir ¦ ln ¦ chmod ¦ xargs ¦ env ¦ time ¦ timeout ¦ nice ¦ command ¦ builtin ¦ exec
eval ¦ source ¦ read ¦ let ¦ declare ¦ export ¦ printf ¦ test ¦ [ ¦ mapfile ¦ unset ¦ alias ¦ trap ¦ set ¦ shopt
hash ¦ bash ¦ sh ¦ python3 ¦ perl ¦ tar ¦ less ¦ man ¦ vim ¦ ./ls ¦ dd ¦ install ¦ truncate ¦ curl ¦ curl ¦ sort
uniq ¦ xxd ¦ sed ¦ awk ¦ find ¦ git
""")
WRAPPERS = _listed(r"""
env {} ¦ env X=1 {} ¦ time {} ¦ timeout 2 {} ¦ nice {} ¦ command {} ¦ exec {} ¦ builtin {} ¦ sh -c '{}' ¦ X=1 {}
bash -c "{}" ¦ eval {} ¦ echo a | xargs {} ¦ find . -exec {} \; ¦ ({}) ¦ {{ {}; }} ¦ ! {} ¦ if true; then {}; fi
for i in 1; do {}; done ¦ f() {{ {}; }}; f ¦ echo $({}) ¦ echo `{}` ¦ cat <({}) ¦ {} & ¦ coproc {}
while {}; do break; done ¦ echo "$({})" ¦ echo ${{x:-$({})}} ¦ echo $(( $({}) )) ¦ trap '{}' EXIT ¦ alias l='{}'; l
case a in a) {};; esac
""")
FORMS = _listed(r"""
[[ 'x[$(touch new)]' -eq 0 ]] ¦ [[ -v x[$(touch new)] ]] ¦ (( x[$(touch new)] )) ¦ let 'x[$(touch new)]=1'
[ -v 'x[$(touch new)]' ] ¦ test -v 'x[$(touch new)]' ¦ printf -v 'x[$(touch new)]' a ¦ declare 'x[$(touch new)]=1'
read 'x[$(touch new)]' < a.txt ¦ echo $((x[$(touch new)])) ¦ x[$(touch new)]=1 ¦ echo ${{x[$(touch new)]}}
printf %n 'x[$(touch new)]' ¦ unset 'x[$(touch new)]' ¦ printf '%d%n' 1 'x[$(touch new)]'
test 'x[$(touch new)]' -eq 0 ¦ [ 'x[$(touch new)]' -eq 0 ] ¦ test -R 'x[$(touch new)]'
cat < /dev/tcp/127.0.0.1/{port} ¦ echo a > /dev/tcp/127.0.0.1/{port} ¦ curl -s 127.0.0.1:{port}
git ls-remote http://127.0.0.1:{port}/x ¦ git quack ¦ git -c alias.x='!touch new' x
git -c core.fsmonitor='touch new' status ¦ git help log ¦ git log --help ¦ git diff ../outside/file.txt a.txt
git grep -f ../outside/file.txt ¦ git show HEAD:../outside/file.txt ¦ cd sub && cat ../../outside/file.txt
cd .. && cat outside/file.txt ¦ cd ../outside; cat file.txt ¦ wait -p 'x[$(touch new)]' -n
echo a | read 'x[$(touch new)]' ¦ ls {{a,b}}.txt ¦ cat $'a.txt' ¦ cat $"a.txt" ¦ cat a.tx? ¦ cat ~+/a.txt
cat "a.txt" ¦ l''s ¦ \ls ¦ "ls" ¦ LS ¦ $x ls ¦ hostname {port} ¦ getent hosts 127.0.0.1 ¦ cal ¦ id ¦ who ¦ uptime
df . ¦ free ¦ nproc ¦ tr a b < a.txt ¦ date -f names
""")
REDIRECTIONS = _listed(r"""
> new ¦ >new ¦ >| new ¦ &> new ¦ <> new ¦ 2> new ¦ >> new ¦ >& new ¦ > /dev/null ¦ 2>/dev/null ¦ 2>&1 ¦ < a.txt
< .env ¦ < ../outside/file.txt ¦ <<< a ¦ 3<> new ¦ >$x ¦ > 'new' ¦ 2>&1 > new
""")
BETWEEN = (" | ", " && ", "; ", " || ", "\n", " |& ", " & ", ";", "|", "&&", " ;; ", " # ", " <<EOF\na\nEOF\n")
TWISTS = _listed(r"""
' ¦ " ¦ \ ¦ '' ¦ "" ¦ $ ¦ ` ¦ # ¦ – ¦ — ¦ { ¦ } ¦ ( ¦ ) ¦ < ¦ > ¦ | ¦ & ¦ ; ¦ ~ ¦ * ¦ ? ¦ [ ¦ ] ¦ = ¦ ! ¦ ^ ¦ % ¦ -
-- ¦ $' ¦ $" ¦ é ¦ $( ¦ ${ ¦ a
""")
MORE_TWISTS = (*TWISTS, "\n", "\\\n", " ", "\t", "\u3000", "\u00a0", "\u200b", "\r")
WAITS = ("-f", "-F", "--follow", "--retry")
"""Options of tail with which it would go on until it is stopped."""


class CommandMaker:
    """Makes one command after the other."""

    def __init__(self, chance: random.Random, port: int, top: str) -> None:
        self._chance = chance
        self._port, self._top = port, top
        self._readers = [*(program for program in READERS if program != "sleep"), *(["git"] * 12)]

    def command(self) -> str:
        text = self._call()
        while self._chance.random() < 0.25:
            text += self._pick(BETWEEN) + self._call()
        if self._chance.random() < 0.12:
            text = self._pick(WRAPPERS).format(text)
        while self._chance.random() < 0.18:
            place = self._chance.randint(0, len(text))
            text = text[:place] + self._pick(MORE_TWISTS) + text[place + (self._chance.random() < 0.3) :]
        return text

    def _call(self) -> str:
        if self._chance.random() < 0.06:
            return self._pick(FORMS).format(port=self._port)
        program = self._pick(self._readers) if self._chance.random() < 0.85 else self._pick(PROGRAMS)
        options = [option for option in READERS[program].options if option not in WAITS] if program in READERS else []
        if program == "git":
            program = self._pick(tuple(GIT_READERS))
            options = list(GIT_READERS[program].options)
        words = [program, *(self._word(options) for _ in range(self._chance.randint(0, 4)))]
        if program == "[":
            words.append("]")
        text = " ".join(words)
        if self._chance.random() < 0.12:
            text += " " + self._pick(REDIRECTIONS)
        return text

    def _word(self, options: list[str]) -> str:
        dice = self._chance.random()
        if dice < 0.35 and options:
            option = self._pick(options)
            if self._chance.random() < 0.3:
                option += self._pick(("", "=", " ")) + self._pick((*FILES, "1", "a", "new", ".env"))
            if self._chance.random() < 0.1 and len(option) == 2:
                option += self._pick(options)[1:2]
            return option if self._chance.random() < 0.97 else option[:-1]
        if dice < 0.45:
            return self._pick(OPTIONS)
        if dice < 0.7:
            return self._quoted(self._pick(TEXTS))
        return self._pick(BEYOND).replace("{top}", self._top) if dice > 0.97 else self._quoted(self._pick(FILES))

    def _quoted(self, text: str) -> str:
        dice = self._chance.random()
        if dice < 0.45 or not text:
            return f"'{text}'"
        if dice < 0.6:
            return f'"{text}"'
        return text

    def _pick(self, choices: Sequence[str]) -> str:
        return self._chance.choice(choices)
