"""Which files a request names, and whether it wants them read or written. Rules only: no model is asked.

Patterns are compiled when they are first used: a request needs few of them."""

import re
from typing import NamedTuple

PATH = (
    r"(?<![A-Za-z0-9_./@:\\-])((?:[A-Za-z0-9_.-]+/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*"
    r"\.[A-Za-z][A-Za-z0-9]{0,5})(?![A-Za-z0-9_/])"
)
NOT_FILES = frozenset({"e.g", "i.e", "etc.", "node.js", "next.js", "vue.js", "asp.net", "a.m", "p.m"})

READ_EN = r"read|look|see|check|open|show|explain|review|summari[sz]e|describe[ds]?|follow(?:ing)?|run|test|import|use"
WRITE_EN = (
    r"write|create|make|implement|add|put|fix|change|edit|update|refactor|rewrite|translate|convert|complete|finish"
    r"|solve|generate|save|correct|repair|improve|extend|modify|build|append|insert"
)
OTHER_EN = r"move|rename|delete|remove|copy"
VERB_EN = (
    rf"(?i)\b(?:(?P<no>do not|don't|never|without|not)\s+(?:\w+\s+)?)?"
    rf"(?:(?P<write>{WRITE_EN})|(?P<read>{READ_EN})|(?P<other>{OTHER_EN}))(?:ing|s|es)?\b"
)
MATERIAL_EN = (
    r"(?i)\b(?:of|from|like|using|with|by|for|than|against|as|per|about|see|tests?|import)\s+(?:the\s+)?"
    r"(?:file\s+)?[`'\"]?$"
)
SENTENCE_EN = r"[.!?]\s|\n"

VERB_JA = (
    r"(?P<write>書[いきか]|作[っりろ成]|つく[っり]|実装|追加|追記|修正|直[しす]|変更|変え|更新|編集|完成|保存|生成|リファクタ|改良|改善|翻訳)"
    r"|(?P<read>読[んみめ]|見て|見た|見せ|確認|参照|調べ|説明|従[っい]|通り|とおり|基づ|もとに|要約|レビュー|実行)"
    r"|(?P<other>消[しす]|削除|移動|改名|リネーム|コピー)"
)
RENAMED_JA = r"(?:名前|ファイル名)を"
NEGATED_JA = r".{0,4}?(?:ない|ず|しないで|禁止|不要)"
SENTENCE_JA = r"[。！？\n]"
MORE = (
    r"(?i)\b(?:run|execute|launch|start|call|try|test|check|verify|show|tell|explain|describe|summari[sz]e|list|report|commit"
    r"|push|install|delete|remove|move|rename|copy|open|read (?:it|them)|then|after(?:wards| that)|finally|next|also"
    r"|why|what|how|which)\b|[?？]"
    r"|実行|起動|動か|試[しす]|テスト|確認|確かめ|見せ|教え|説明|要約|一覧|報告|コミット|インストール|消[しす]|削除|移動|コピー|読み返"
    r"|その後|そのあと|それから|次に|最後に|また|なぜ|何|どう|か。"
)
"""Words of a request that may ask for more than that files are written."""
ASKS = (
    r"(?i)[?？]|\b(?:what|who|why|how|which|explain|describe|summari[sz]e|tell|show)\b"
    r"|説明|教え|見せ|何|誰|なぜ|要約|か。?$"
)
GREETS = (
    r"(?i)(?:\W*(?:hello|hi|hey|good (?:morning|afternoon|evening|day)|thanks|thank you|nice to meet you"
    r"|there|again|very much|duckflow"
    r"|こんにち[はわ]|こんばんは|おはよう|ございま(?:す|した)|(?:はじ|初)めまして|やあ|どうも|ありがとう|お疲れ(?:さま|様)(?:です)?"
    r"|よろしく(?:お願いします)?))+\W*"
)
JAPANESE = r"[ぁ-んァ-ヶ一-龠]"


LONGEST_GREETING = 60


class Errand(NamedTuple):
    """The files of a request, in the order in which it names them; those to be moved or deleted need no look."""

    names: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    only_writes: bool = False
    """Nothing else is asked for, as far as can be told: when the files are written, it is done."""
    only_asks: bool = False
    """The request is a question: with an answer it is done."""


def greets(request: str) -> bool:
    """Whether it is a greeting or thanks and nothing else."""
    return len(request) < LONGEST_GREETING and re.fullmatch(GREETS, request) is not None


def errand(request: str) -> Errand:
    """What the request says of files. Where it is not clear that one is to be written, it is not."""
    found = [match for match in re.finditer(PATH, request) if match[1].lower() not in NOT_FILES]
    names, writes = list[str](), list[str]()
    for at, match in enumerate(found):
        end = found[at + 1].start() if at + 1 < len(found) else len(request)
        wish = _wish(request, match, request[match.end() : end])
        if wish != "other":
            names.append(match[1])
        if wish == "write" and _is_file(match[1]):
            writes.append(match[1])
    only = bool(writes) and not re.search(MORE, request)
    return Errand(tuple(dict.fromkeys(names)), tuple(dict.fromkeys(writes)), only, _only_asks(request))


def _is_file(name: str) -> bool:
    """Whether it cannot be something else with a dot in it, such as a method."""
    from duckflow.state.criterion import ENDINGS

    return "/" in name or re.search(rf"(?i)\.{ENDINGS}$", name) is not None


def _only_asks(request: str) -> bool:
    verbs = VERB_JA if not request.isascii() and re.search(JAPANESE, request) else VERB_EN
    return bool(re.search(ASKS, request)) and not any(
        found["write"] or found["other"] for found in re.finditer(verbs, request)
    )


def _wish(request: str, path: re.Match[str], after: str) -> str:
    if not request.isascii() and re.search(JAPANESE, request):
        after = re.split(SENTENCE_JA, after, maxsplit=1)[0]
        verb = re.search(VERB_JA, after)
        if re.search(RENAMED_JA, re.split(SENTENCE_JA, request[: path.start()])[-1] + after):
            return "other"
        if verb and re.match(NEGATED_JA, after[verb.end() :]):
            return ""
        if verb:
            return str(verb.lastgroup)
    before = re.split(SENTENCE_EN, request[: path.start()])[-1]
    if re.search(MATERIAL_EN, before):
        return "read"
    verbs = list(re.finditer(VERB_EN, before))
    if not verbs or verbs[-1]["no"]:
        return ""
    return next(name for name in ("write", "read", "other") if verbs[-1][name])
