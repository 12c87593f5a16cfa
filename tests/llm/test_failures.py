"""Messages for people when an endpoint refuses."""

import logging
from collections.abc import Callable

import pytest
from fake_endpoint import Exchange, FakeEndpoint, bodies, refuses, says
from talking import AS_JSON, QUICK, collect, provider_for

from duckflow.errors import ContextTooLong, ProviderRefused, ProviderUnreachable
from duckflow.llm.endpoint_model import EndpointModel
from duckflow.llm.endpoints import Endpoint, Key

SECRET = "sk-very-secret-9f8e7d6c"


@pytest.mark.parametrize("status", [429, 402])
async def test_a_lack_of_credit_is_not_retried(status: int) -> None:
    with FakeEndpoint(refuses(status, "You exceeded your current quota", code="insufficient_quota")) as server:
        with pytest.raises(ProviderRefused) as caught:
            await collect(provider_for(server))
        assert len(server.received) == 1
    assert caught.value.key == "model.no_credit"


async def test_401_names_the_variable_to_set_and_never_shows_the_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    key = Key(SECRET, "FAKE_API_KEY")
    with FakeEndpoint(refuses(401, f"Incorrect API key provided: {SECRET}\x1b[31m")) as server:
        provider = provider_for(server, key=key)
        with pytest.raises(ProviderRefused) as caught:
            await collect(provider)
        assert len(server.received) == 1
        assert server.headers_seen[0]["authorization"] == f"Bearer {SECRET}"
    error = caught.value
    # The keyring holds no key for an endpoint on this machine, so the message does not mention it.
    assert error.key == "model.key_refused_alone"
    assert error.values["variable"] == "FAKE_API_KEY"
    assert error.values["entry"] == "duckflow fake"
    assert error.values["source"] == "FAKE_API_KEY"
    assert error.values["detail"] == " Incorrect API key provided: *** [31m"
    texts = [repr(error), str(error), repr(provider), repr(key), str(vars(error)), caplog.text]
    assert not any(SECRET in text for text in texts)


async def test_403_without_a_key_asks_for_one() -> None:
    with FakeEndpoint(refuses(403, "no key")) as server, pytest.raises(ProviderRefused) as caught:
        await collect(provider_for(server))
    assert caught.value.key == "model.key_missing_alone"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, "The model `duck-1` does not exist or you do not have access to it."),
        (404, 'model "duck-1" not found, try pulling it first'),
        (400, "duck-1 is not a valid model ID"),
        (404, "models/duck-1 is not found for API version v1beta"),
    ],
)
async def test_an_unknown_model_is_named(status: int, message: str) -> None:
    with FakeEndpoint(refuses(status, message)) as server:
        with pytest.raises(ProviderRefused) as caught:
            await collect(provider_for(server), AS_JSON)
        assert len(server.received) == 1
    assert caught.value.key == "model.unknown"
    assert caught.value.values["model"] == "duck-1"


@pytest.mark.parametrize(
    ("status", "message", "told"),
    [
        (403, "Country, region, or territory not supported", "model.place_refused"),
        (400, "User location is not supported for the API use.", "model.place_refused"),
        (403, "This service is not available in your region", "model.place_refused"),
        (403, "Project `p` does not have access to model `duck-1`", "model.forbidden"),
        (403, "Forbidden", "model.forbidden"),
        (403, "duck-1 requires moderation and your input was flagged", "model.content_refused"),
        (403, "Your API key was reported as leaked. Please use another API key.", "model.key_refused_alone"),
        (403, "Request had insufficient authentication scopes.", "model.key_refused_alone"),
    ],
)
async def test_a_403_concerns_the_key_only_where_it_says_so(status: int, message: str, told: str) -> None:
    with FakeEndpoint(refuses(status, message)) as server, pytest.raises(ProviderRefused) as caught:
        await collect(provider_for(server, key=Key(SECRET, "FAKE_API_KEY")))
    assert caught.value.key == told


@pytest.mark.parametrize("answer", [bodies("404 page not found", 404), bodies("", 301)])
async def test_a_wrong_address_is_named(answer: Callable[[Exchange], None]) -> None:
    with FakeEndpoint(answer) as server, pytest.raises(ProviderRefused) as caught:
        await collect(provider_for(server))
    assert caught.value.key == "model.wrong_address"
    assert caught.value.values["where"] == server.url


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."),
        (400, "Your input exceeds the context window of this model."),
        (400, "the request exceeds the available context size. try increasing the context size"),
        (500, "Context size has been exceeded."),
        (400, "The decoder prompt (length 9001) is longer than the maximum model length of 8192."),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048575)."),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "Please reduce the length of the messages or completion."),
        (400, "This model's maximum prompt length is 131072 but the request contains 200000 tokens."),
        (400, "Input is too long for requested model."),
        (413, "Request Entity Too Large"),
        (429, "Request too large for duck-1 on tokens per min (TPM): Limit 10000, Requested 12000"),
    ],
)
async def test_a_context_that_is_too_long_is_recognized_in_many_wordings(status: int, message: str) -> None:
    with FakeEndpoint(refuses(status, message)) as server:
        with pytest.raises(ContextTooLong) as caught:
            await collect(provider_for(server), AS_JSON)
        assert len(server.received) == 1
    assert caught.value.key == "model.too_long"


async def test_a_final_error_in_a_200_answer_is_not_retried() -> None:
    with FakeEndpoint(bodies({"error": {"code": 401, "message": "No auth"}})) as server:
        with pytest.raises(ProviderRefused) as caught:
            await collect(provider_for(server))
        assert len(server.received) == 1
    assert caught.value.key == "model.key_missing_alone"


async def test_an_https_address_of_a_server_without_tls() -> None:
    with FakeEndpoint(says("hi")) as server:
        secure = Endpoint("fake", server.url.replace("http:", "https:"))
        with pytest.raises(ProviderUnreachable) as caught:
            await collect(EndpointModel(secure, "duck-1", None, QUICK))
    assert caught.value.key == "model.certificate_refused"
