"""Whether a text asks the user something: by a question mark, by how its last sentence is built, or by asking for a
decision. Small grammars of Japanese and English; patterns are compiled when they are first used."""

import re
import unicodedata
from collections import deque

HIDDEN = (
    r"(?ms)```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|^>[^\n]*$"
    r"|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|『[^』\n]{1,200}』"
)
"""Code, addresses and quotations: a question mark in them asks nobody anything."""
ASKED = r"[?？]+[)）*_\"”]*(?:\s*[(（][^()（）\n]{0,200}[)）])?"
ITEM = r"\s*(?:[-*•・]|\(?\d{1,2}[.):）、．]|\(?[A-Da-dＡ-Ｄ][.):）：])\s*"
SENTENCE_END = r"[?？!！。]|[.](?=\s|$)|\n"
STATEMENT = r"(?<=[。！])|(?<=[.!])\s+"
QUESTION_MARKS = "?？"
LAST_QUESTIONS = 50
"""Only so many at the end are looked at: a text may be made of nothing else."""
LONGEST_HELD, REMEMBERED = 4000, 2000
"""Characters: nothing longer is held back for a question; what was passed on so long ago decides nothing any more."""


def has_question(text: str) -> bool:
    return "?" in text or "？" in text


def last_question(text: str) -> str:
    """The question that a text ends with, without what was said before it."""
    line = text.rstrip().rpartition("\n")[2]
    parts = re.split(STATEMENT, re.sub(ITEM, "", line, count=1) if re.match(ITEM, line) else line)
    return next((part.strip() for part in reversed(parts) if part.strip()), "")


def one_question(text: str) -> str:
    """What is said, without the questions after the first one of those at its end."""
    return text[: settled(text, whole=True)].rstrip() if has_question(text) else text


def settled(text: str, whole: bool = False) -> int:
    """How much of a text is sure to stay: up to the first question that only questions follow.

    `whole`: nothing more comes, so a sentence without an end is one."""
    if not has_question(text):
        return len(text)
    masked = re.sub(HIDDEN, lambda match: "x" * len(match[0]), text)
    for question in deque(re.finditer(ASKED, masked), LAST_QUESTIONS):
        in_list, before = _place(masked, question.start())
        if in_list and before.endswith(tuple(QUESTION_MARKS)):
            continue
        if _only_questions(masked, question.end(), whole, in_list):
            return question.end()
    return len(text)


class QuestionStream:
    """Passes on what is said as it comes, and holds back what may be one question too many."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = 0

    def feed(self, delta: str) -> str:
        self._text += delta
        place = settled(self._text)
        passed = self._up_to(place if len(self._text) - place <= LONGEST_HELD else len(self._text))
        self._forget()
        return passed

    def end(self) -> str:
        return self._up_to(len(one_question(self._text)))

    def _up_to(self, place: int) -> str:
        passed, self._shown = self._text[self._shown : max(place, self._shown)], max(place, self._shown)
        return passed

    def _forget(self) -> None:
        """Keep the end of what was passed on, from the beginning of a line where there is one; code stays code."""
        place = self._shown - REMEMBERED
        if place < REMEMBERED:
            return
        place = self._text.rfind("\n", 0, place) + 1 or place
        fence = "```\n" if self._text.count("```", 0, place) % 2 else ""
        self._text, self._shown = fence + self._text[place:], self._shown - place + len(fence)


def _place(text: str, place: int) -> tuple[bool, str]:
    """Whether a place is in an item of a list, and the line that the list belongs to: after a question the items are
    the choices."""
    *before, line = text[:place].split("\n")
    if not re.match(ITEM, line):
        return False, ""
    return True, next((one.rstrip() for one in reversed(before) if one.strip() and not re.match(ITEM, one)), "")


def _only_questions(text: str, place: int, whole: bool, in_list: bool) -> bool:
    """Whether nothing but questions follows; a list after a question holds its choices."""
    first = _word_from(text, place)
    if first == len(text):
        return not whole
    if not in_list and "\n" in text[place:first] and re.compile(ITEM).match(text, _line_from(text, place)):
        return False
    while (place := _word_from(text, place)) < len(text):
        if item := re.compile(ITEM).match(text, place):
            place = item.end()
        end = re.compile(SENTENCE_END).search(text, place)
        if end is None:
            return not whole
        if end[0] not in QUESTION_MARKS:
            return False
        place = (re.compile(ASKED).match(text, end.start()) or end).end()
    return True


def _word_from(text: str, place: int) -> int:
    """Where the next word begins."""
    found = re.compile(r"\S").search(text, place)
    return found.start() if found else len(text)


def _line_from(text: str, place: int) -> int:
    """Where something other than line breaks and spaces begins."""
    found = re.compile(r"[^\n ]").search(text, place)
    return found.start() if found else len(text)


LONGEST_END = 600
"""Characters at the end that are looked at: what is asked further up is not what it ends with."""
MARKED = r"[?？]+[)）*_\"”’']*\Z"
SENTENCES = r"(?<=[。！？])|(?<=[^\d][.!?])(?=\s)|(?<=[?？][)）])|\n+"
ENDING = r"[\s。．.!！…~〜ー:：;；*_)）]+\Z"
BESIDE = (
    rf"(?i){ITEM}|[(（\[].*[)）\]]$|x*$"
    r"|(?:if|otherwise|or else|until then|i(?:['’]ll| will| am|['’]m) (?:wait|hold)|(?:many )?thanks|thank you)\b"
    r"|それとも|または|あるいは|もし|でなければ|(?:よ|宜し|よろし)ければ|(?:はい|いいえ|ok)(?:の場合|なら)|お待ち|待って(?:い|お)ます|それまで"
)
"""What may stand behind a question without taking it back: its choices, a remark in brackets, what follows from it."""

# English: an inverted verb, a question word before one, a short question word alone, or somebody is told to decide.
WHO = r"(?:i|we|you|they|he|she|it|this|that|these|those|there|the|my|your|our|any|all|both|either|everything)"
VERB = (
    r"(?:shall|should|may|might|can|could|would|will|does|did|is|are|was|were|am|has"
    r"|(?:do|have|need)(?= (?:i|we|you|they)\b))"
)
WH = r"(?:what|which|where|when|who|whom|whose|how|why)"
LEAD = r"(?:(?:so|and|but|or|well|ok|okay|first|now|also|then|finally)\b[,:]? |.{1,60}[,:;–—-] )?"
SAY = (
    r"(?:tell me|let me know|confirm|choose|pick|select|decide|specify|clarify|advise|give me|send me|point me"
    r"|approve)"
)
SAY_PLEASE = (
    rf"(?:{SAY}|indicate|reply|respond|answer|say|provide|share|name|type|enter|state|describe|explain|weigh in|grant)"
)
DECISION = (
    r"(?:call|choice|decision|turn|pick|preferences?|approval|go-ahead|ok|okay|confirmation|answer|input|opinion|thoughts"
    r"|instructions?|permission|consent|sign-?off|feedback|guidance|view|verdict|word|wish(?:es)?|reply|response)"
)
ASKED_EN = (
    rf"(?i)^{LEAD}(?:{VERB}(?:n['’]t)? {WHO}\b"
    rf"|(?:(?:at|in|to|for|by|from|with|on) )?{WH}(?: (?!{WHO}\b|{VERB}\b)[\w'-]+){{0,4}} {VERB}\b (?:{WHO}\b|be\b)"
    rf"|(?:open |one |another |quick )?questions?(?: for you)?:"
    rf"|want me\b|(?:ok|okay) (?:to|for me|if i)\b|(?:sound|look) (?:good|right|ok)"
    rf"|(?:please |kindly |just |do |could you |can you |would you )+{SAY_PLEASE}\b|{SAY}(?: (?!to\b)\w+.*)?$"
    rf"|(?:any )?(?:preferences?|objections?|thoughts|opinions?|wishes)$)"
    rf"|(?:^|[:;–—] ){WH}(?: (?!{WHO}\b)\w+){{0,3}}$|(?:^|[:;–—] )(?:\w+ ){{1,3}}or(?: \w+){{1,3}}$"
    rf"|\bplease {SAY_PLEASE}\b|[,;:–—] {SAY}$|\band (?:let me know|tell me)\b|[(\[]y(?:es)?/no?[)\]]"
    rf"|\b(?:wait(?:ing)?(?: here)? (?:for|on)|await(?:ing)?|need|require|depends on|asking for)"
    rf" (?:you$|your {DECISION}\b)"
    rf"|\byour {DECISION}(?: (?:on|about|for|to|before|first|here|now|please|then)\b.*)?$|\b(?:up|over) to you$"
    rf"|\b(?:need|like|want|wait(?:ing)? for|ask) you to {SAY_PLEASE}\b"
    rf"|\byou(?:['’]ll)? (?:need|have|must|want)(?: to)? {SAY_PLEASE}\b"
    r"|\bi(?:['’]d| would| must)? (?:like|need|want|have) to know\b|\bi(?: was| am|['’]m)? wonder(?:ing)?\b"
    r"|\b(?:not sure|unsure|unclear) (?:which|whether|what|if|how)[^,;]*\b(?:you|want|prefer)\b"
    r"|\b(?:once|when|as soon as|after|unless|until|if) you(?:['’]ve| have)?"
    r" (?:approved?|confirm(?:ed)?|agreed?|decided?|say|tell|chosen?|choose)\b"
)
CLOSING_EN = (
    r"(?i)let me know if (?:you (?:have|need|run|see|hit|notice|find)|anything|something|there|any\b)|further questions"
)

# Japanese: the particle at the end, a question word that nothing takes up, or a polite request for a decision.
OPEN_WORD = (
    r"(?:何|なに|なん|どれ|どの|どち|どっち|どこ|どう(?!ぞ|やら)|どん(?!どん)|いつ|誰|だれ|いく[つら]|なぜ"
    r"|どなた)(?!より)"
)
DECIDING = (
    r"(?:教え|知らせ|聞かせ|伺わ|決め|選ん|選び|選択|指示|判断|返事|返信|返答|回答|答え|意見|希望|承認|許可|承諾|了承|同意|許し|指定|意向"
    r"|確認|検討|おっしゃ|仰っ|言っ|一言|コメント|合図|決定|決断|フィードバック|好み|明示|ゴーサイン|申し付け|番号)"
)
ASKED_JA = (
    r"(?:[すんいるただのくむぬつうぐぶけめてでァ-ヶa-z0-9]|[\u4e00-\u9fff])(?<!どう|なん)(?<![何静確豊僅愚密遥])か"
    r"(?:な|ね|ねえ|しら|い)?$"
    rf"|{OPEN_WORD}(?:(?!か(?!ら)|も)[^、。])*$|(?:ます|です|[いるん])よね$|よろしいですね$|(?:いい|する|やる)の$"
    r"|(?:でしょう|だろう|よろしい|いいです|構いません|かまいません)か[、,]"
    rf"|{DECIDING}[^、。]{{0,10}}(?:ください|下さい|くれ|お願い|願い(?:ます|たい)|願えま|いただ|頂|もらえ|もらいた|ほしい|欲しい|幸い"
    r"|助かり|どうぞ)(?!いた|き、?ありがとう|きまし)"
    r"|(?:教え|知らせ|聞かせ|決め|選ん|答え|言っ)[てで][ねよ]?$"
    rf"|{DECIDING}[^、。]{{0,6}}(?:待ち|待って|次第|しだい|が必要|が欲しい|がほしい)|[ごお]{DECIDING}[をは]$"
)
CLOSING_JA = r"(?:何か|不明|質問|気にな|お困り).{0,14}(?:あれば|たら|でしたら)"
PLAIN_CHECK = r"(?:ご?確認|検討)[^かが、。]{0,8}(?:ください|下さい|お願い|いただ)"
"""Somebody may look at what is done: only with something to decide is that a question."""

LEAVE = (
    r"(?i)\b(?:shall|should|may|can|could) (?:i|we)\b|\b(?:ok|okay|fine|all ?right) (?:to|if i|for me)\b"
    r"|\b(?:want|like|need) me to\b|\b(?:confirm|approve|approval|permission|go-ahead|consent)\b"
    r"|[てで]も?(?:よろしい|宜しい|いい|良い|よい|構い|かまい|大丈夫)|ましょうか|承認|許可|了承|同意|確認"
)
GOES_ON = (
    r"(?i)\b(?:also|next|continue|go on|another|anything|more|else|as well|too|further|then)\b|ほか|他に|次|続|さらに"
)
OFFERS_MORE = (
    r"(?i)\b(?:anything|something|what) (?:else|more)\b|\bwhat(?:['’]s| is| comes)? next\b"
    r"|(?:他|ほか|外)に(?:も|何|なに)|次は(?:何|なに|どう)"
)
"""A polite end: what was asked for is done, and nothing of it is left open."""
REPORTED = (
    r"(?i)\bi(?:['’]ve| have)\b|\b(?:has|have) been\b|\b(?:was|were|done|wrote|written|created|added|updated|changed"
    r"|fixed|made"
    r"|removed|finished|ran|now (?:has|have|exists?|prints?|works?))\b|まし[たて]|できた|済み|完了"
)


def asks_leave(text: str) -> bool:
    """Whether it ends with asking for leave to do something, and tells of nothing as done: who says this has not acted
    yet, wherever the deed stands in the list."""
    last = last_question(text)
    asked = ends_asking(text) and re.search(LEAVE, last) is not None
    return asked and not re.search(GOES_ON, last) and not re.search(REPORTED, text)


def offers_more(text: str) -> bool:
    """Whether it ends with asking what else there is to do."""
    return ends_asking(text) and re.search(OFFERS_MORE, last_question(text)) is not None


def ends_asking(text: str) -> bool:
    """Whether what is said last asks for an answer, perhaps with its choices or a remark behind it."""
    end = unicodedata.normalize("NFKC", re.sub(HIDDEN, lambda match: "x", text.rstrip()[-LONGEST_END:]))
    sentences = [one.strip() for one in re.split(SENTENCES, end) if one and one.strip()]
    while sentences:
        sentence = sentences.pop()
        if asks(sentence.strip(" -*_#>")):
            return True
        if not sentences or not re.match(BESIDE, sentence):
            return False
    return False


def asks(sentence: str) -> bool:
    if re.search(MARKED, sentence):
        return True
    plain = re.sub(ENDING, "", sentence)
    if re.search(ASKED_EN, plain):
        return re.search(CLOSING_EN, plain) is None
    if plain.isascii() or re.search(ASKED_JA, plain) is None or re.search(CLOSING_JA, plain):
        return False
    return re.search(PLAIN_CHECK, plain) is None or re.search(rf"か[、,を]|よければ|{OPEN_WORD}", plain) is not None
