"""What the user writes in passing, found by rules: what is forbidden, and which files are mentioned with an `@`.

Patterns are compiled when they are first used: most messages need none of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

CODE = r"(?s)```.*?(?:```|\Z)|`[^`\n]*`"

SENTENCE = r"(?:[^.!?。！？\n]|[.](?=[^\s.]))+[.!?。！？]?"
NOT_ORDERS = r"(?!you\b|know\b|think\b|understand\b|worry\b|mind\b|see\b|get\b|care\b|remember\b|have\b|want\b|need\b)"
FORBIDS = (
    r"(?i)(?:^|[,;:]\s*|\b(?:please|but|and|also|so)\s+)(?:please\s+)?(?:do not|don['’]t|never)\s+"
    + NOT_ORDERS
    + r"\w+"
    r"|\b(?:must not|mustn['’]t)\s+\w+"
    r"|\bwithout\s+(?:any|using|changing|touching|adding|new|external)\b"
    r"|\b(?:use only|only use)\s+\w+"
    r"|\bno\s+(?:new\s+|external\s+|third-party\s+)?(?:dependenc(?:y|ies)|packages|libraries|network|internet)\b"
    r"|(?<!心配)(?<!遠慮)(?<!無理)(?<!気に)(?:しないで|せずに|してはいけ|しないこと|しては駄目|してはだめ)"
    r"|(?<!忘)(?<!わか)(?<!分か)[かがさたなばまらわえけせてねめれべげ]ない(?:こと|で(?=$|[\s、。!！]|[くほ下欲ね]))"
    r"|(?:使わ|変え|触ら|触れ|消さ|入れ|いじら)(?:ないで|ずに)|なしで|禁止"
    r"|だけを?(?:使|変|編集|修正|直)"
)
MOST_CONSTRAINTS = 2
LINE = 100
BESIDE = r"(?i)^(?:but|and|also|でも|ただし?|それと|あと)[\s、,]*|(?:\s*[@＠][^\s@＠]+)+$"
"""What is no part of an order: how it is joined on, and files that are handed over with it."""
ORDER = r"(?i)(?:please\s+)?(?:do not|don['’]t|never|use only|only use|no)\b"

MENTION = r'(?<![A-Za-z0-9_@./+-])[@＠](?:"([^"\n]{1,200})"|([^\s@＠"\'`<>|]+))'
PATH_END = r"[,;:!?)\]}。、！？」』）…]|\.(?=$|[,;:!?)\]}]|[^\x00-\x7f])|[^\x00-\x7f]"
"""What may stand right after a path."""
FILE_LIKE = (
    r"[\w~./-]*\w\.(?:py|md|txt|json|toml|ya?ml|cfg|ini|csv|tsv|log|xml|html?|css|[jt]sx?|go|rs|java|kt|c|h|cpp|cc|cs|rb"
    r"|php|swift|sh|sql|lock|ipynb|png|jpe?g|gif|webp)"
)
ELSEWHERE = ("~/", "../")
MOST_MENTIONS = 10
LONGEST_MENTION = 200


def constraints_in(text: str) -> list[str]:
    """The sentences that forbid something or narrow it down; a question does neither. Of one that is longer than a
    line the clause that is an order by itself: half of a description would say something else."""
    plain = re.sub(CODE, lambda match: "x" * len(match[0]), text)
    found: list[str] = []
    for match in re.finditer(SENTENCE, plain):
        sentence = re.sub(BESIDE, "", text[match.start() : match.end()].strip(" 、,\n"))
        if re.search(FORBIDS, re.sub(BESIDE, "", match[0].strip(" 、,"))) and not sentence.endswith(("?", "？")):
            order = sentence if len(sentence) <= LINE else _order(sentence)
            found += [order.rstrip(".。!！")] if order else []
    return found[:MOST_CONSTRAINTS]


def _order(sentence: str) -> str:
    clauses = (re.sub(r"(?i)^(?:and|but|also|so)\s+", "", one.strip()) for one in re.split(r"[,;、，；]", sentence))
    orders = (one for one in clauses if re.match(ORDER, one) or (not one.isascii() and re.search(FORBIDS, one)))
    return next((one for one in orders if len(one) <= LINE), "")


@dataclass(frozen=True, slots=True)
class Mention:
    """What stands behind an `@`: the paths it may be, the longest first."""

    paths: tuple[str, ...]

    @property
    def file_like(self) -> str:
        """The path that is meant when none of them exists, if it looks like one; a decorator or a name does not."""
        return next((path for path in self.paths if re.fullmatch(FILE_LIKE, path) or path.startswith(ELSEWHERE)), "")


def mentions(text: str) -> list[Mention]:
    """In the order of the text, told from addresses and decorators; what stands in code is code."""
    found = dict.fromkeys(_found(re.sub(CODE, lambda match: " " * len(match[0]), text)))
    return list(found)[:MOST_MENTIONS]


def _found(text: str) -> Iterator[Mention]:
    for match in re.finditer(MENTION, text):
        quoted, bare = match[1], match[2]
        yield Mention((quoted,)) if quoted else Mention(tuple(_paths(bare[:LONGEST_MENTION])))


def _paths(token: str) -> Iterator[str]:
    """The whole word, then what is left when what may follow a path is taken off: Japanese has no spaces."""
    yield token
    path_end = re.compile(PATH_END)
    for length in range(len(token) - 1, 0, -1):
        if path_end.match(token, length):
            yield token[:length]
