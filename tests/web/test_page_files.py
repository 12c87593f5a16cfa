"""The files of the page: what is vendored is what was published, nothing comes from outside, every word is known."""

import hashlib
import re
from pathlib import Path

import duckflow.web
from duckflow.i18n.words import catalogue
from duckflow.web.session_requests import WORDS

PAGE = Path(duckflow.web.__file__).parent / "page"
VENDORED = {
    # htm 3.1.1, the file preact/standalone.module.js of its npm package, with preact 10 inside.
    "htm-preact.js": "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7",
}
LICENCES = {"LICENSE.htm": "Apache License", "LICENSE.preact": "The MIT License"}
HEAVIEST = 220 * 1000
LONGEST = 300
OUTSIDE = re.compile(r"https?://(?!www\.w3\.org/)|//cdn|\beval\(|new Function|\.innerHTML|document\.write")
KEY = re.compile(r"""\bt\(\s*["'`]([a-z_]+(?:\.[\w.]+)?\.?)|[?:]\s*["'](page\.[\w.]+)["']""")


def own() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in PAGE.iterdir() if path.is_file()}


def test_vendored_files_are_as_published_and_have_their_licence() -> None:
    files = {path.name: path for path in (PAGE / "vendor").iterdir()}
    assert files.keys() == VENDORED.keys() | LICENCES.keys()
    for name, known in VENDORED.items():
        assert hashlib.sha256(files[name].read_bytes()).hexdigest() == known
    for name, title in LICENCES.items():
        assert title in files[name].read_text(encoding="utf-8")


def test_the_page_is_light_and_its_files_are_short() -> None:
    vendored = sum((PAGE / "vendor" / name).stat().st_size for name in VENDORED)
    assert vendored + sum(len(text.encode()) for text in own().values()) <= HEAVIEST
    lines = {name: text.count("\n") for name, text in own().items() if name.endswith(".js")}
    assert [name for name, count in lines.items() if count > LONGEST] == []


def test_no_script_or_style_is_inline_or_from_outside() -> None:
    """The server's policy would block it anyway; this test shows where it is."""
    files = own()
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=", files["index.html"]) == []
    for name, text in files.items():
        assert (
            re.findall(r"https?://(?!www\.w3\.org/)|//cdn|\beval\(|new Function|\.innerHTML|document\.write", text)
            == []
        ), name
        assert re.findall(r"\sstyle=", text) == [], name
    # What the server made of Markdown is the only markup that is set, and in one place.
    places = [name for name, text in files.items() for _ in re.findall("dangerouslySetInnerHTML", text)]
    assert places == ["talk.js"]


def test_every_word_of_the_page_is_known_in_both_languages_and_sent_to_it() -> None:
    used = {one or other for text in own().values() for one, other in KEY.findall(text)}
    assert len(used) > 100
    for language in ("en", "ja"):
        known = catalogue(language)
        for key in used:
            begins = [one for one in known if one.startswith(key)] if key.endswith(("_", ".")) else [key]
            assert begins and all(one in known for one in begins), (language, key)
            assert key.startswith(WORDS), key


def test_no_word_of_the_page_is_left_over() -> None:
    text = "\n".join(own().values())
    begun = tuple(re.findall(r"page\.[a-z_.]+(?=\$\{)", text))
    unused = [
        key for key in catalogue("en") if key.startswith("page.") and key not in text and not key.startswith(begun)
    ]
    assert unused == []
