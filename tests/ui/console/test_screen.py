"""The screen of a real terminal: replies in Markdown, panels, Japanese, narrow and plain terminals."""

import re
from pathlib import Path

from tests.journeys.story import act, decide, respond
from tests.ui.console.terminal import Terminal, said, start

COLOUR = re.compile(rb"\x1b\[[0-9;]*\b(?:3[0-7]|9[0-7]|4[0-7])m")
REPLY = """# 見出し
**太字**と`code_name`です。[角括弧]はそのまま。
- first
- second

```python
def hello() -> None:
    print("やあ")
```

| 名前 | Name |
|------|-----:|
| 太郎 | Taro |
| Ann | アン |

the end """
LOOK = {"json": decide(act("file_ops.list_files"), step="PLANNING", next_step="continue")}


def test_a_reply_streams_as_markdown_survives_a_resize_and_esc_stops_it(tmp_path: Path, opened: list[Terminal]) -> None:
    slow = said(REPLY + " ".join(map(str, range(900))), chunk=8, delay=0.03)
    terminal = start(opened, tmp_path, [slow, said("again")], columns=80)
    terminal.enter("show me")
    screen = terminal.wait_for("見出し")
    assert "the end" not in screen and "# 見出し" not in screen
    terminal.type("half a thought")
    terminal.resize(60)
    terminal.wait_for(" tok")
    screen = terminal.wait_for("the end 0 1 2")
    lines = [line.strip() for line in screen.split("\n")]
    assert "太字とcode_nameです。[角括弧]はそのまま。" in lines
    assert "• first" in lines and 'print("やあ")' in lines
    header, rule, *_ = (columns for columns in terminal.columns_of("│") if columns)
    assert header == rule
    terminal.enter("")
    terminal.wait_for("before its next step: half a")
    terminal.type("\x1b")
    screen = terminal.wait_for("Interrupted.")
    assert screen.count("見出し") == 1
    terminal.wait_for("› half a thought")
    terminal.enter("")
    terminal.wait_for("again")


def test_the_models_thoughts_are_one_line_until_they_are_opened(tmp_path: Path, opened: list[Terminal]) -> None:
    thought = "first I look\nthen I wonder\n" + "and wonder on " * 40
    thinks = said("It is so.", chunk=8, delay=0.03) | {"thought": thought}
    terminal = start(opened, tmp_path, [thinks], columns=80)
    terminal.enter("think")
    screen = terminal.wait_for("… and wonder on")
    assert "first I look" not in screen
    terminal.type("\x0f")
    terminal.wait_for("first I look")
    screen = terminal.wait_for("It is so.")
    assert "thought for about" in screen
    terminal.type("\x0f")
    terminal.wait_until(lambda screen: "first I look" not in screen and "It is so." in screen)


def test_japanese_at_sixty_columns_without_colour(tmp_path: Path, opened: list[Terminal]) -> None:
    ask = {"json": decide(act("file_ops.write_file", path="日本語.txt", why="長い理由" * 12), respond("書きました。"))}
    replies = [ask, "print('こんにちは')\n", *[LOOK] * 5]
    terminal = start(opened, tmp_path, replies, "--lang", "ja", columns=60, NO_COLOR="1")
    terminal.enter("書いて")
    terminal.wait_for("1. はい")
    terminal.wait_until(lambda _: sum(columns == {0, 59} for columns in terminal.columns_of("│")) >= 6)
    terminal.answer("はい")
    terminal.wait_for("書きました。")
    terminal.enter("見て回って")
    terminal.wait_for("4. 別のやり方でやり直す")
    terminal.answer("　２　")
    terminal.wait_for("言葉で書いてください")
    terminal.answer("ここで止めて")
    bar = terminal.wait_until(lambda screen: "· ask ·" in screen).rstrip().split("\n")[-1]
    assert "0." in bar and "script.jsonl" in bar
    assert not COLOUR.search(terminal.raw)


def test_without_emoji_the_vitals_are_told_in_figures(tmp_path: Path, opened: list[Terminal]) -> None:
    config = tmp_path / "home/config/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[ui]\nemoji = false\nascii = true\n")
    terminal = start(opened, tmp_path, [*[LOOK] * 5], columns=100)
    terminal.wait_for("Mood: 1.00 | Focus: 1.00")
    terminal.enter("look")
    screen = terminal.wait_for("4. Start again in another way")
    assert screen.isascii()


def test_a_dumb_terminal_gets_plain_lines(tmp_path: Path, opened: list[Terminal]) -> None:
    write = {"json": decide(act("file_ops.write_file", path="a.txt"), respond("**done**"))}
    terminal = start(opened, tmp_path, [write, "x = 1\n", said("never", delay=60)], TERM="dumb")
    terminal.enter("write")
    terminal.wait_for("+x = 1")
    terminal.answer("yes")
    terminal.wait_for("**done**")
    terminal.enter("go on")
    terminal.type("\x03")
    terminal.wait_for("Interrupted.")
    terminal.type("\x04")
    assert terminal.wait_for_end() == 0
    assert b"\x1b" not in terminal.raw


def test_esc_works_while_a_long_line_full_of_signs_streams_in(tmp_path: Path, opened: list[Terminal]) -> None:
    signs = " ".join(f"*{number}" for number in range(40_000))
    terminal = start(opened, tmp_path, [said(signs, chunk=40, delay=0.0005)])
    terminal.enter("go")
    terminal.wait_for("*1000 ")
    terminal.type("\x1b")
    screen = terminal.wait_for("Interrupted.")
    assert "*39999" not in screen
