"""Writing whole files: a new file is made, an existing one must have been read, and its form stays."""

import pytest
from acting import Hands
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duckflow.errors import ToolError


async def test_a_new_file_is_shown_as_a_diff_then_made_with_its_folders(hands: Hands) -> None:
    preview = hands.preview("write_file", path="src/new/app.py", content="one\ntwo\n")
    assert [(impact.path, impact.change, impact.added, impact.removed) for impact in preview.impacts] == [
        ("src/new/app.py", "create", 2, 0)
    ]
    assert preview.diff == "--- a/src/new/app.py\n+++ b/src/new/app.py\n@@ -0,0 +1,2 @@\n+one\n+two"
    done = await hands.do("write_file", path="src/new/app.py", content="one\ntwo\n")
    assert hands.bytes_of("src/new/app.py") == b"one\ntwo\n"
    assert done.changed == ("src/new/app.py",)
    assert (done.for_user.key, done.for_user.values) == ("file.created", {"path": "src/new/app.py", "lines": 2})


async def test_a_file_that_was_just_written_or_read_may_be_written_again(hands: Hands) -> None:
    await hands.do("write_file", path="a.txt", content="one\n")
    done = await hands.do("write_file", path="a.txt", content="two\nthree\n")
    assert done.for_user.values == {"path": "a.txt", "added": 2, "removed": 1}
    hands.put("b.txt", "old\n")
    await hands.do("read_file", path="b.txt")
    await hands.do("write_file", path="b.txt", content="new\n")
    assert hands.bytes_of("b.txt") == b"new\n"


async def test_writing_an_unread_file_is_refused_with_its_text_which_counts_as_reading(hands: Hands) -> None:
    hands.put("a.txt", "precious\n")
    refusal = await hands.refused("write_file", path="a.txt", content="new\n")
    assert refusal.key == "file.read_first"
    assert "precious" in refusal.for_model
    assert hands.bytes_of("a.txt") == b"precious\n"
    await hands.do("write_file", path="a.txt", content="new\n")
    assert hands.bytes_of("a.txt") == b"new\n"


async def test_a_long_file_never_read_must_be_read(hands: Hands) -> None:
    hands.put("a.txt", "precious\n" * 1000)
    for _ in range(2):
        refusal = await hands.refused("write_file", path="a.txt", content="new\n")
        assert refusal.key == "file.read_first"
        assert "precious" not in refusal.for_model
    await hands.do("read_file", path="a.txt", end_line=500)
    assert "only a part" in (await hands.refused("write_file", path="a.txt", content="new\n")).for_model
    await hands.do("read_file", path="a.txt", start_line=501)
    await hands.do("write_file", path="a.txt", content="new\n")


async def test_a_file_changed_by_someone_else_since_is_refused(hands: Hands) -> None:
    hands.put("a.txt", "old\n")
    await hands.do("read_file", path="a.txt")
    hands.put("a.txt", "someone else's\n")
    refusal = await hands.refused("write_file", path="a.txt", content="new\n")
    assert refusal.key == "file.changed"
    assert hands.bytes_of("a.txt") == b"someone else's\n"


async def test_a_file_that_appears_or_changes_after_the_preview_is_refused(hands: Hands) -> None:
    hands.preview("write_file", path="new.txt", content="mine\n")
    hands.put("new.txt", "")
    with pytest.raises(ToolError, match=r"file\.changed"):
        await hands.run_only("write_file", path="new.txt", content="mine\n")
    assert hands.bytes_of("new.txt") == b""


async def test_reading_by_one_name_counts_for_another_name_of_the_same_file(hands: Hands) -> None:
    hands.put("real.txt", "old\n")
    (hands.folder / "link.txt").symlink_to("real.txt")
    await hands.do("read_file", path="./link.txt")
    done = await hands.do("write_file", path=f"{hands.folder}/link.txt", content="new\n")
    assert done.changed == ("real.txt",)
    assert hands.bytes_of("real.txt") == b"new\n"
    assert (hands.folder / "link.txt").is_symlink()


async def test_the_same_text_again_writes_nothing(hands: Hands) -> None:
    await hands.do("write_file", path="a.txt", content="one\n")
    before = (hands.folder / "a.txt").stat().st_mtime_ns
    done = await hands.do("write_file", path="a.txt", content="one\n")
    assert (done.for_user.key, done.changed) == ("file.unchanged", ())
    assert (hands.folder / "a.txt").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        ("あ\r\nい\r\n".encode("cp932"), "う\nえ\n", "う\r\nえ\r\n".encode("cp932")),
        ("日本語です\n".encode("euc_jp"), "漢字だ\n", "漢字だ\n".encode("euc_jp")),
        ("\ufeffone\n".encode(), "two\n", "\ufefftwo\n".encode()),
        ("\ufeffone\n".encode(), "\ufefftwo\n", "\ufefftwo\n".encode()),
        ("\ufeffone\r\n".encode("utf-16-le"), "二\n", "\ufeff二\r\n".encode("utf-16-le")),
        ("\ufeffone\n".encode("utf-16-be"), "二\n", "\ufeff二\n".encode("utf-16-be")),
        (b"one\r\ntwo\r\nthree\n", "a\nb", b"a\r\nb\r\n"),
        (b"one\ntwo", "a\nb\n", b"a\nb"),
        (b"one\n", "a", b"a\n"),
        (b"", "a", b"a"),
        (b"caf\xe9 \n", "th\xe9 \n", b"th\xe9 \n"),
    ],
)
async def test_encoding_line_ends_and_the_end_of_the_file_stay(
    hands: Hands, before: bytes, content: str, after: bytes
) -> None:
    hands.put("a.txt", before).chmod(0o640)
    await hands.do("read_file", path="a.txt")
    await hands.do("write_file", path="a.txt", content=content)
    assert hands.bytes_of("a.txt") == after
    assert (hands.folder / "a.txt").stat().st_mode & 0o777 == 0o640


async def test_a_character_the_encoding_does_not_have_is_named(hands: Hands) -> None:
    hands.put("a.txt", "日本語\n".encode("cp932"))
    await hands.do("read_file", path="a.txt")
    refusal = await hands.refused("write_file", path="a.txt", content="一\n二😀\n")
    assert "😀" in refusal.for_model
    assert "line 2" in refusal.for_model
    assert refusal.key == "file.encoding"
    assert hands.bytes_of("a.txt") == "日本語\n".encode("cp932")
    assert (await hands.refused("write_file", path="b.txt", content="half \ud800")).key == "file.encoding"


async def test_bytes_that_would_not_survive_are_not_rewritten(hands: Hands) -> None:
    doubled = b"\x87\x90\r\n"  # A sign that CP932 has twice: writing would pick the other one.
    hands.put("a.txt", doubled)
    assert "≒" in await hands.told("read_file", path="a.txt")
    assert (await hands.refused("write_file", path="a.txt", content="x\n")).key == "file.not_exact"
    assert hands.bytes_of("a.txt") == doubled


async def test_a_binary_file_is_not_overwritten_with_text(hands: Hands) -> None:
    hands.put("pic.png", b"\x89PNG\r\n\0")
    assert (await hands.refused("write_file", path="pic.png", content="x")).key == "file.binary"


async def test_a_fence_around_the_whole_content_is_removed(hands: Hands) -> None:
    await hands.do("write_file", path="a.py", content="```python\nprint('hi')\n```\n")
    assert hands.bytes_of("a.py") == b"print('hi')\n"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.text(st.sampled_from("aあ漢ー、 \n"), min_size=1),
    content=st.text(st.sampled_from("bいテ字。\t\n")),
    form=st.sampled_from([("utf-8", b""), ("cp932", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe")]),
    newline=st.sampled_from(["\n", "\r\n"]),
)
async def test_any_written_text_can_be_read_back_in_the_same_form(
    hands: Hands, before: str, content: str, form: tuple[str, bytes], newline: str
) -> None:
    encoding, bom = form
    before += "\nかな\n"
    hands.put("a.txt", bom + before.replace("\n", newline).encode(encoding))
    await hands.do("read_file", path="a.txt")
    await hands.do("write_file", path="a.txt", content=content + "かな\n")
    assert hands.bytes_of("a.txt") == bom + (content + "かな\n").replace("\n", newline).encode(encoding)
