"""The type and size of a picture are read from its first bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.state.picture import Picture, looks_like_picture, read_header
from tests.journeys.drawn import gif, jpeg, png, webp


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (png(640, 480), ("image/png", 640, 480)),
        (gif(16, 9), ("image/gif", 16, 9)),
        (jpeg(1920, 1080), ("image/jpeg", 1920, 1080)),
        (webp(4000, 3000), ("image/webp", 4000, 3000)),
        (webp(800, 600, b"VP8L"), ("image/webp", 800, 600)),
        (webp(801, 599, b"VP8 "), ("image/webp", 801, 599)),
        (png(0, 5), None),
        (png()[:20], None),
        (jpeg(5, 5)[:12], None),
        (b"\xff\xd8\xff", None),
        (b"RIFF", None),
        (b"<svg/>", None),
        (b"", None),
    ],
)
def test_type_and_size_are_read_from_the_header(data: bytes, read: tuple[str, int, int] | None) -> None:
    assert read_header(data) == read


def test_a_picture_is_described_in_a_few_characters_and_its_tokens_estimated() -> None:
    shot = Picture(digest="d", name="shot.png", media="image/png", size=34_567, width=800, height=600)
    assert (shot.describe(), shot.tokens) == ("PNG, 800×600, 35 KB", 640)
    assert shot.model_copy(update={"width": 8000, "height": 8000}).tokens == 1600
    assert shot.model_copy(update={"width": 1, "height": 1, "size": 70}).tokens == 85


def test_a_picture_is_known_by_its_suffix() -> None:
    assert looks_like_picture("a/Shot.PNG") and looks_like_picture("x.jpeg") and not looks_like_picture("x.svg")


PICTURES = st.sampled_from([png(3, 2), gif(3, 2), jpeg(3, 2), webp(3, 2), webp(3, 2, b"VP8L")])


@given(PICTURES, st.binary(max_size=40), st.integers(0, 60))
def test_a_damaged_header_never_raises(data: bytes, noise: bytes, at: int) -> None:
    read = read_header(data[:at] + noise)
    assert read is None or (read[1] > 0 and read[2] > 0)
