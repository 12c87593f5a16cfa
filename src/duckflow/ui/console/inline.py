"""What stands inside a line of Markdown: emphasis, code, links. Square brackets alone are just brackets."""

import re

from rich.text import Text

MARK = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+)"
    r"|(?P<strong>\*{2}|__)"
    r"|(?P<strike>~~)"
    r"|(?P<soft>[*_])"
    r'|!?\[(?P<label>[^\[\]\n]*)\]\((?P<url>[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+"[^"\n]*")?\)'
    r"|<(?P<address>https?://[^\s<>]+)>"
)
STYLES = {"strong": "bold", "soft": "italic", "strike": "strike"}
CODE = "cyan"
DEEPEST = 6


def inline(text: str, coloured: bool, depth: int = 0) -> Text:
    """The line in its styles. Without colours code keeps its ticks, so that it can be told from words."""
    done = Text()
    place = 0
    while mark := MARK.search(text, place) if depth < DEEPEST else None:
        done.append(text[place : mark.start()])
        place = _take(text, mark, done, coloured, depth)
    return done.append(text[place:])


def _take(text: str, mark: re.Match[str], done: Text, coloured: bool, depth: int) -> int:
    """Put what the mark stands for; where to go on."""
    sign, kind = mark[0], mark.lastgroup
    if mark["escape"]:
        done.append(sign[1])
        return mark.end()
    if mark["ticks"]:
        end = re.compile(rf"(?<!`){sign}(?!`)").search(text, mark.end())
        if end is None:
            done.append(sign)
            return mark.end()
        code = text[mark.end() : end.start()]
        code = code[1:-1] if len(code) > 2 and code[0] == code[-1] == " " and code.strip() else code
        done.append(code if coloured else f"`{code}`", style=CODE)
        return end.end()
    if mark["address"]:
        done.append(mark["address"], style="underline")
        return mark.end()
    if mark["url"] is not None:
        _link(mark["label"] or "", mark["url"], done, coloured, depth)
        return mark.end()
    end = _closing(text, mark)
    if end < 0 or kind is None:
        done.append(sign)
        return mark.end()
    done.append_text(_styled(inline(text[mark.end() : end], coloured, depth + 1), STYLES[kind]))
    return end + len(sign)


def _link(label: str, url: str, done: Text, coloured: bool, depth: int) -> None:
    """The address is always shown: a link must not hide where it leads."""
    if label and label != url:
        done.append_text(_styled(inline(label, coloured, depth + 1), "underline"))
        done.append(f" ({url})", style="dim")
    else:
        done.append(url, style="underline")


def _closing(text: str, mark: re.Match[str]) -> int:
    """Where the emphasis ends, or -1 when the sign is just a sign (2 * 3, snake_case)."""
    sign, start = mark[0], mark.end()
    underscore = sign[0] == "_"
    if start >= len(text) or text[start].isspace() or (underscore and _in_word(text, mark.start() - 1)):
        return -1
    place = start
    while (place := text.find(sign, place)) > 0:
        after = place + len(sign)
        alone = len(sign) == 2 or (text[after : after + 1] != sign and text[place - 1] != sign)
        if place > start and alone and not text[place - 1].isspace() and not (underscore and _in_word(text, after)):
            return place
        place = after
    return -1


def _in_word(text: str, place: int) -> bool:
    return 0 <= place < len(text) and text[place].isalnum()


def _styled(text: Text, style: str) -> Text:
    text.stylize(style)
    return text
