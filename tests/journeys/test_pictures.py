"""Pictures in a conversation: attached, shown as a line, sent to models that see, refused clearly for the others."""

import base64
from pathlib import Path
from typing import Any

import pytest

from duckflow.errors import PicturesRefused
from duckflow.events.types import LoopBegan, MessageAdded, Noticed
from duckflow.events.views import Attachment
from duckflow.i18n.words import Words
from duckflow.llm.scripted import ScriptedReply
from duckflow.store.sessions import Sessions
from tests.journeys.drawn import jpeg, png
from tests.journeys.story import Story, decide, respond

OK = decide(respond("ok"), step="PLANNING")


def with_pictures(top: Path, replies: list[Any], **more: Any) -> Story:
    story = Story(top, replies, **more)
    (story.folder / "shot.png").write_bytes(png(800, 600))
    return story


def shown(story: Story, number: int = -1) -> list[bytes]:
    """The pictures of a request, in its order."""
    request = story.model.requests[number]
    return [request.pictures[one.digest] for message in request.messages for one in message.pictures]


def notices(story: Story) -> list[str]:
    words = Words(story.settings.language)
    return [words.phrase(event.what) for event in story.all(Noticed)]


@pytest.mark.parametrize("native", [False, True], ids=["json", "native"])
@pytest.mark.parametrize(
    ("language", "says", "told"),
    [
        ("en", "What is wrong in @shot.png?", "picture: shot.png (PNG, 800×600, "),
        ("ja", "@shot.pngのどこが変ですか", "画像: shot.png（PNG, 800×600, "),
    ],
)
async def test_a_mentioned_picture_is_sent_and_shown_as_a_line(
    tmp_path: Path, native: bool, language: str, says: str, told: str
) -> None:
    story = with_pictures(tmp_path, [OK, OK], language=language, native=native)
    assert await story.tell(says) == "done"
    assert shown(story) == [(story.folder / "shot.png").read_bytes()]
    assert "[@shot.png: quoted" in story.prompt() or "[@shot.png: " in story.prompt()
    assert any(line.startswith(told) for line in notices(story))
    (story.folder / "shot.png").write_bytes(b"changed")
    await story.tell("and now?")
    # What was shown stays what it was.
    assert [data[:4] for data in shown(story)] == [b"\x89PNG"]


async def test_it_survives_a_restart_a_fork_and_goes_with_its_session(tmp_path: Path) -> None:
    story = with_pictures(tmp_path, [OK])
    await story.tell("look at @shot.png")
    story = story.restart([OK])
    await story.tell("what was it?")
    assert shown(story) == [png(800, 600)]
    journal = story.session.path
    story.session.close()
    sessions = Sessions(journal.parent)
    forked = sessions.fork(journal)
    kept = forked.with_suffix(".pictures")
    assert [file.read_bytes() for file in kept.iterdir()] == [png(800, 600)]
    [entry] = [one for one in sessions.here() if one.path == forked]
    sessions.remove(entry)
    assert not kept.exists() and journal.with_suffix(".pictures").exists()


async def test_from_elsewhere_only_pictures_are_taken_and_the_path_is_shown(tmp_path: Path) -> None:
    (tmp_path / "my shot.jpg").write_bytes(jpeg(640, 480))
    (tmp_path / "secret.png").write_text("not a picture at all")
    story = with_pictures(tmp_path, [OK])
    await story.tell(f'compare @"{tmp_path}/my shot.jpg" with @{tmp_path}/secret.png and @{tmp_path}/none.png')
    assert shown(story) == [jpeg(640, 480)]
    assert "not a picture at all" not in story.prompt()
    keys = [event.what.key for event in story.all(Noticed)]
    assert keys[:3] == ["picture.attached", "picture.not_one", "file.missing"]


async def test_a_front_end_may_hand_one_over(tmp_path: Path) -> None:
    story = with_pictures(tmp_path, [OK, OK])
    await story.chat.say("what is this?", [Attachment("pasted.png", data=base64.b64encode(png(7, 7)).decode())])
    assert shown(story) == [png(7, 7)] and "picture pasted.png: PNG, 7×7" in story.prompt()
    await story.chat.say("and this?", [Attachment("odd.png", data="*")])
    assert story.all(Noticed)[-1].what.key == "picture.not_one"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("place", ["{folder}/big.jpg", "{outside}/big.jpg"])
async def test_one_that_is_too_large_is_made_smaller_and_both_sizes_are_told(tmp_path: Path, place: str) -> None:
    image = pytest.importorskip("PIL.Image")
    story = with_pictures(tmp_path, [OK])
    path = Path(place.format(folder=story.folder, outside=tmp_path))
    noise = image.effect_noise((4000, 3000), 80).convert("RGB")
    noise.save(path, "JPEG", quality=95)
    await story.tell(f"look at @{path}")
    (data,) = shown(story)
    before = f"JPEG, 4000×3000, {path.stat().st_size / 1_000_000:.2f} MB"
    (line,) = [line for line in notices(story) if line.startswith("picture:")]
    assert before in line and "JPEG, 2000×1500" in line and len(data) < 3_750_000
    assert "JPEG, 2000×1500" in story.prompt()


async def test_a_wide_picture_with_holes_keeps_them(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    story = with_pictures(tmp_path, [OK])
    image.new("RGBA", (9000, 30), (0, 0, 0, 0)).save(story.folder / "shot.png")
    await story.tell("look at @shot.png")
    assert "picture: shot.png (PNG, 2000×7" in " ".join(notices(story)) and len(shown(story)) == 1


@pytest.mark.parametrize(
    ("width", "height", "more", "size"),
    [(9000, 10, 0, "9000×10"), (500, 500, 4_000_000, "4.00 MB"), (9, 9, 60_000_000, "60.00 MB")],
    ids=["no picture inside", "no pixels inside", "no end"],
)
async def test_one_that_cannot_be_made_smaller_is_refused_with_its_true_size(
    tmp_path: Path, width: int, height: int, more: int, size: str
) -> None:
    story = with_pictures(tmp_path, [OK])
    (story.folder / "shot.png").write_bytes(png(width, height, b"x" * more))
    await story.tell("look at @shot.png")
    told = " ".join(notices(story))
    assert shown(story) == [] and "too large for a model" in told and size in told


@pytest.mark.parametrize(("language", "told"), [("en", "cannot see pictures"), ("ja", "画像に対応していません")])
async def test_a_model_that_cannot_see_is_not_asked_and_another_one_sees_it_later(
    tmp_path: Path, language: str, told: str
) -> None:
    story = with_pictures(tmp_path, [OK, OK], language=language)
    story.model.takes_pictures = False
    assert await story.tell("look at @shot.png") == "usage"
    why = story.ending().why
    assert why and told in Words(language).phrase(why) and story.model.requests == []
    assert await story.tell("then without it") == "done"
    assert shown(story) == [] and "shot.png" in story.prompt()
    assert ("you cannot see pictures" if language == "en" else "画像を見ることができません") in story.prompt()
    story.model.takes_pictures = True
    assert await story.tell("now?") == "done"
    assert shown(story) == [png(800, 600)]


async def test_a_picture_that_was_refused_is_not_sent_again_but_those_taken_before_are(tmp_path: Path) -> None:
    refused = ScriptedReply(error=PicturesRefused("model.picture_refused", model="m", detail="could not process image"))
    story = with_pictures(tmp_path, [OK, refused, OK])
    (story.folder / "bad.png").write_bytes(png(5, 5))
    await story.tell("look at @shot.png")
    assert await story.tell("and at @bad.png") == "failed"
    why = story.ending().why
    assert why and why.key == "model.picture_refused"
    assert await story.tell("go on") == "done"
    assert shown(story) == [png(800, 600)] and "bad.png: not shown any more" in story.prompt()


async def test_pictures_count_and_are_pruned_with_their_message(tmp_path: Path) -> None:
    story = with_pictures(tmp_path, [OK] * 30, settings={"memory": {"summaries": False, "budget_tokens": 8000}})
    for number in range(12):
        (story.folder / f"p{number}.png").write_bytes(png(1000 + number, 900))
        await story.tell(f"look at @p{number}.png")
    pictures = [len(request.pictures) for request in story.model.requests]
    assert pictures[:3] == [1, 2, 3] and max(pictures) <= 8000 // 1200 and pictures[-1] >= 1
    assert shown(story)[-1] == png(1011, 900)


async def test_what_is_gone_from_the_disk_is_said(tmp_path: Path) -> None:
    story = with_pictures(tmp_path, [OK, OK])
    await story.tell("look at @shot.png")
    for file in story.session.path.with_suffix(".pictures").iterdir():
        file.write_bytes(b"damaged")
    await story.tell("again")
    assert shown(story) == [] and "shot.png: not shown any more" in story.prompt()


async def test_the_record_names_the_picture_by_its_digest(tmp_path: Path) -> None:
    story = with_pictures(tmp_path, [OK])
    await story.tell("look at @shot.png")
    [added] = [event for event in story.all(MessageAdded) if event.message.pictures]
    [kept] = story.session.path.with_suffix(".pictures").iterdir()
    assert added.message.pictures[0].digest == kept.name and kept.stat().st_mode & 0o077 == 0


async def test_a_picture_that_comes_while_a_blind_model_works_is_told_of(tmp_path: Path) -> None:
    story = with_pictures(tmp_path, [decide(step="PLANNING", next_step="continue"), OK, OK])
    story.model.takes_pictures = False

    def interrupt(_: int, event: Any) -> None:
        if isinstance(event, LoopBegan) and event.loop == 1:
            story.chat.take("look at @shot.png too")

    story.chat.hear(interrupt)
    assert await story.tell("begin") == "done"
    assert "model.blind" in [event.what.key for event in story.all(Noticed)]
    assert "you cannot see pictures" in story.prompt()
