"""Bytes to text and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.tools.files.document import decode, dominant_newline, encode, to_lf, with_newline

JAPANESE = "これはテストです。\r\n変数 = 値 # 説明\r\nカタカナと漢字\r\n"


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"plain", "utf-8"),
        (b"", "utf-8"),
        (JAPANESE.encode(), "utf-8"),
        (JAPANESE.encode("cp932"), "cp932"),
        (JAPANESE.encode("euc_jp"), "euc_jp"),
        ("ｱｲｳｴ ﾃﾞｰﾀ 株式会社①".encode("cp932"), "cp932"),
        ("名前を入力してください".encode("euc_jp"), "euc_jp"),
        ("naïve café, déjà vu".encode("cp1252"), "cp1252"),
        ("\ufeff日本".encode("utf-16-le"), "utf-16-le"),
        ("\ufeff日本".encode("utf-16-be"), "utf-16-be"),
    ],
)
def test_the_encoding_is_recognised_and_gives_the_same_bytes_back(data: bytes, encoding: str) -> None:
    decoded = decode(data)
    assert decoded
    assert decoded.form.encoding == encoding
    assert encode(decoded.text, decoded.form) == data


@pytest.mark.parametrize("data", [b"a\0b", b"\x81\x01\x02", b"\xff\xfe\0", b"\xef\xbb\xbf\xff", b"\x00\x00\xfe\xff"])
def test_binary_data_is_not_taken_for_text(data: bytes) -> None:
    assert decode(data) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_no_text_or_survive_encoding_or_are_marked_as_not_exact(data: bytes) -> None:
    decoded = decode(data)
    if decoded and decoded.form.exact:
        assert encode(decoded.text, decoded.form) == data


@given(st.text(max_size=200).filter(lambda text: "\0" not in text and not text.startswith("\ufeff")))
def test_any_text_in_utf_8_survives_encoding(text: str) -> None:
    decoded = decode(text.encode())
    assert decoded
    assert decoded.text == text


@pytest.mark.parametrize(
    ("text", "newline"),
    [("", "\n"), ("a", "\n"), ("a\nb\r\n", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb\r", "\r"), ("a\rb\n", "\n")],
)
def test_most_lines_decide_which_line_end_is_the_files(text: str, newline: str) -> None:
    assert dominant_newline(text) == newline


def test_line_ends_survive_conversion() -> None:
    assert to_lf("a\r\nb\r\n") == "a\nb\n"
    assert to_lf("a\rb") == "a\nb"
    assert with_newline("a\nb\r\n", "\r\n") == "a\r\nb\r\n"
