"""Endpoints differ in the parts of a request they accept; Duckflow finds out once and remembers."""

from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint, formats_sent, refuses, refuses_field, says
from talking import AS_JSON, HELLO, SCHEMA, collect, provider_for, retries, text_of

from duckflow.errors import ProviderRefused
from duckflow.llm.facts import FORMATS, Abilities, AbilityBook
from duckflow.llm.provider import Request


async def test_refused_parts_are_left_out_one_by_one_and_remembered(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "abilities.json"
    answer = refuses_field("response_format", "response_format json_schema is not supported", says('{"ok": true}'))
    with FakeEndpoint(answer) as server:
        chunks = await collect(provider_for(server, book=AbilityBook(path)), AS_JSON)
        assert formats_sent(server) == ["json_schema!", "json_schema", "json_object", "text"]
        assert text_of(chunks) == '{"ok": true}'
        assert retries(chunks) == []
        await collect(provider_for(server, book=AbilityBook(path)), AS_JSON)
        assert formats_sent(server)[4:] == ["text"]
        await collect(provider_for(server), AS_JSON)
        assert len(formats_sent(server)) == 9, "another book knows nothing"


async def test_a_schema_is_sent_as_it_is() -> None:
    with FakeEndpoint(says("{}")) as server:
        await collect(provider_for(server), AS_JSON)
    form = server.received[0]["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["schema"] == SCHEMA
    assert form["json_schema"]["strict"] is True


async def test_a_refusal_without_reasons_is_blamed_on_the_format_only_if_that_helps() -> None:
    with FakeEndpoint(refuses_field("response_format", "Bad Request", says("{}"))) as server:
        assert text_of(await collect(provider_for(server), AS_JSON)) == "{}"
    with FakeEndpoint(refuses(400, "Bad Request")) as server, pytest.raises(ProviderRefused) as caught:
        await collect(provider_for(server), AS_JSON)
    assert caught.value.key == "model.request_refused"
    assert caught.value.values["detail"] == "Bad Request"


async def test_newer_field_names_and_fixed_temperatures_are_learned(tmp_path: Path) -> None:
    answer = refuses_field(
        "max_tokens",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        refuses_field(
            "temperature",
            "Unsupported value: 'temperature' does not support 0 with this model.",
            refuses_field("stream_options", "Unrecognized request argument: stream_options", says("done")),
        ),
    )
    request = Request(HELLO.messages, max_tokens=9, temperature=0)
    book = AbilityBook(tmp_path / "abilities.json")
    with FakeEndpoint(answer) as server:
        assert text_of(await collect(provider_for(server, book=book), request)) == "done"
        assert server.received[-1]["max_completion_tokens"] == 9
        assert "temperature" not in server.received[-1]
        first = len(server.received)
        await collect(provider_for(server, book=book), request)
        assert len(server.received) == first + 1


async def test_the_limit_is_left_out_where_an_endpoint_knows_none_of_its_names() -> None:
    answer = refuses_field(
        "max_tokens",
        "unknown field max_tokens, did you mean max_completion_tokens",
        refuses_field("max_completion_tokens", "unknown field max_completion_tokens", says("free")),
    )
    with FakeEndpoint(answer) as server:
        assert text_of(await collect(provider_for(server), Request(HELLO.messages, max_tokens=9))) == "free"
    assert len(server.received) == 3


async def test_a_limit_too_large_is_left_out_but_not_held_against_the_endpoint(tmp_path: Path) -> None:
    book = AbilityBook(tmp_path / "abilities.json")
    words = "max_tokens is too large: 99999. This model supports at most 4096 completion tokens."
    with FakeEndpoint(refuses_field("max_tokens", words, says("ok")), says("ok")) as server:
        assert (
            text_of(await collect(provider_for(server, book=book), Request(HELLO.messages, max_tokens=99999))) == "ok"
        )
        await collect(provider_for(server, book=book), Request(HELLO.messages, max_tokens=50))
    assert server.received[-1]["max_tokens"] == 50


LOWERED = Abilities(format="object", lacks=frozenset({"temperature"}))


@pytest.mark.parametrize(
    "content",
    ["", "{cut", "[]", '{"http://duck d": 7}', '{"http://duck d": {"learned": 1e999}}', "\x00" * 9, "[" * 9999],
)
def test_a_damaged_file_of_abilities_is_ignored_and_rewritten(tmp_path: Path, content: str) -> None:
    path = tmp_path / "abilities.json"
    path.write_text(content)
    book = AbilityBook(path)
    assert book.recall("http://duck", "d", Abilities()) == Abilities()
    book.learn("http://duck", "d", LOWERED)
    assert AbilityBook(path).recall("http://duck", "d", Abilities()) == LOWERED


def test_learned_abilities_expire(tmp_path: Path) -> None:
    path = tmp_path / "abilities.json"
    AbilityBook(path, days=30, now=lambda: 1000.0).learn("http://duck", "d", LOWERED)
    soon, late = (AbilityBook(path, days=30, now=lambda at=at: at) for at in (2000.0, 1000.0 + 31 * 86_400))
    assert soon.recall("http://duck", "d", Abilities()) == LOWERED
    assert late.recall("http://duck", "d", Abilities()) == Abilities()


def test_each_model_has_its_own_entry_and_no_temporary_file_is_left(tmp_path: Path) -> None:
    path = tmp_path / "abilities.json"
    for model in ("a", "b"):
        AbilityBook(path).learn("http://duck", model, Abilities(format=FORMATS["ab".index(model) + 1]))
    assert [AbilityBook(path).recall("http://duck", model, Abilities()).format for model in "ab"] == [
        "schema",
        "object",
    ]
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_of_abilities_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    AbilityBook(tmp_path / "file" / "abilities.json").learn("http://duck", "d", LOWERED)
    (tmp_path / "taken").mkdir()
    AbilityBook(tmp_path / "taken").learn("http://duck", "d", LOWERED)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "taken"]
