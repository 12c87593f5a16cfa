"""Tests which model is found in which situation, and the notes about it."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from fake_endpoint import FakeEndpoint, says

from duckflow.errors import ModelError, ProviderUnreachable, UsageError
from duckflow.llm.discover import Discovery, ModelChoice, discover
from duckflow.llm.endpoints import SERVERS, usable_key
from duckflow.llm.settings import EndpointSettings, LlmSettings
from duckflow.state.data import say

PATIENT = 5.0
SECRET = "sk-secret-abc"


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the keyring of the user who runs the tests."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")


@pytest.fixture
def nowhere() -> Iterator[str]:
    """Returns an address where nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def alone(nowhere: str, **servers: str) -> LlmSettings:
    """Returns settings for a machine where only these local servers answer."""
    moved = {name: EndpointSettings(base_url=servers.get(name, nowhere)) for name in SERVERS}
    return LlmSettings(endpoints=moved, probe_seconds=PATIENT)


@pytest.mark.parametrize(
    ("name", "kind", "url", "model"),
    [
        ("openai:gpt-5-mini", "endpoint", "https://api.openai.com/v1", "gpt-5-mini"),
        ("OpenAI", "endpoint", "https://api.openai.com/v1", "gpt-5-mini"),
        ("openrouter:qwen/qwen3-coder:free", "endpoint", "https://openrouter.ai/api/v1", "qwen/qwen3-coder:free"),
        ("ollama:llama3:8b", "endpoint", "http://127.0.0.1:11434/v1", "llama3:8b"),
        ("groq", "endpoint", "https://api.groq.com/openai/v1", "openai/gpt-oss-120b"),
        ("anthropic:claude-opus-5", "endpoint", "https://api.anthropic.com", "claude-opus-5"),
        ("google:gemini-4", "endpoint", "https://generativelanguage.googleapis.com/v1beta", "gemini-4"),
        ("cohere:command-a", "endpoint", "https://api.cohere.ai/compatibility/v1", "command-a"),
    ],
)
async def test_a_name_gives_the_endpoint_and_the_model(name: str, kind: str, url: str, model: str) -> None:
    choice = await discover(name, LlmSettings(), {"OPENAI_API_KEY": SECRET})
    assert choice.endpoint is not None
    assert (choice.kind, choice.endpoint.base_url, choice.model) == (kind, url, model)
    assert choice.why.key == "model.chosen.flag"
    assert choice.name == f"{name.partition(':')[0].lower()}:{model}"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("openai/gpt-5.2", "openai:gpt-5.2"),
        ("Anthropic/claude-opus-4-8", "anthropic:claude-opus-4-8"),
        ("openrouter/anthropic/claude-sonnet-5", "openrouter:anthropic/claude-sonnet-5"),
        ("openrouter/qwen/qwen3-coder:free", "openrouter:qwen/qwen3-coder:free"),
        ("groq/openai/gpt-oss-120b", "groq:openai/gpt-oss-120b"),
        ("together_ai/Qwen/Qwen3-Coder", "together:Qwen/Qwen3-Coder"),
        ("vertex_ai/gemini-4", "google-cloud:gemini-4"),
        ("hosted_vllm/my/model", "vllm:my/model"),
        ("local/smollm2-135m", "local:smollm2-135m"),
    ],
)
async def test_names_as_other_programs_write_them(name: str, shown: str) -> None:
    discovery = Discovery(LlmSettings(model=name), {})
    assert (await discovery.named(name, say("model.chosen.flag"))).name == shown
    assert (await discovery.choose("", say("model.chosen.flag"))).name == shown
    assert discovery.spelled(name) in (shown, name)


async def test_the_users_own_server_may_have_names_with_a_slash() -> None:
    with FakeEndpoint(says("hi"), models=[{"id": "openai/gpt-oss-120b"}, {"id": "Qwen/Coder"}]) as server:
        environ = {"OPENAI_BASE_URL": server.url}
        names = ("openai/gpt-oss-120b", "Qwen/Coder", "openai/other", "unlisted/model", "anthropic/claude-sonnet-5")
        models = [(await discover(name, LlmSettings(), environ)).name for name in names]
    assert models == [
        "openai:openai/gpt-oss-120b",
        "openai:Qwen/Coder",
        "openai:other",
        "openai:unlisted/model",
        "anthropic:claude-sonnet-5",
    ]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("opnai/gpt-5.2", "openai:gpt-5.2"),
        ("antropic:claude-sonet-5", "anthropic:claude-sonnet-5"),
        ("claude-sonnet-5", "anthropic:claude-sonnet-5"),
        ("moonshotai-cn/kimi-k2-thinking", "moonshot:kimi-k2-thinking"),
        ("qwen/qwen3-coder", "openrouter:qwen/qwen3-coder"),
        ("claude", "anthropic:claude-sonnet-5"),
        ("Claude-4", "anthropic:claude-sonnet-5"),
        ("grok", "xai:grok-4.3"),
        ("anthropc:claude", "anthropic:claude-sonnet-5"),
        ("duck", "ollama:duck"),
    ],
)
async def test_for_a_wrong_name_the_nearest_right_ones_are_suggested(name: str, nearest: str) -> None:
    with pytest.raises(UsageError) as caught:
        await discover(name, LlmSettings(), {})
    near = str(caught.value.values["near"]).split(", ")
    assert nearest in near
    assert len(near) <= 3


@pytest.mark.parametrize(
    ("name", "shown"),
    [("local", "local:qwen2.5-coder-1.5b"), ("local:smollm2-135m", "local:smollm2-135m")],
)
async def test_the_embedded_model_by_name(name: str, shown: str) -> None:
    choice = await discover(name, LlmSettings(), {})
    assert (choice.kind, choice.name) == ("embedded", shown)


async def test_a_script_by_name() -> None:
    choice = await discover("scripted:demo/a:b.jsonl", LlmSettings(), {})
    assert (choice.kind, choice.model) == ("scripted", "demo/a:b.jsonl")


async def test_the_flag_comes_before_the_config_and_the_config_before_the_environment() -> None:
    settings = LlmSettings(model="groq:some-model")
    environ = {"OPENAI_API_KEY": SECRET, "GROQ_API_KEY": "gsk-1"}
    assert (await discover("openai:o3", settings, environ)).name == "openai:o3"
    by_config = await discover("", settings, environ)
    assert (by_config.name, by_config.why.key, by_config.key_source) == (
        "groq:some-model",
        "model.chosen.config",
        "GROQ_API_KEY",
    )
    by_environment = await discover("", LlmSettings(), environ)
    assert by_environment.name == "openai:gpt-5-mini"
    assert by_environment.why.values == {"variable": "OPENAI_API_KEY"}


@pytest.mark.parametrize(
    ("variable", "endpoint"),
    [
        ("OPENAI_API_KEY", "openai"),
        ("OPENROUTER_API_KEY", "openrouter"),
        ("GROQ_API_KEY", "groq"),
        ("GEMINI_API_KEY", "gemini"),
        ("GOOGLE_API_KEY", "gemini"),
        ("DEEPSEEK_API_KEY", "deepseek"),
        ("MISTRAL_API_KEY", "mistral"),
        ("XAI_API_KEY", "xai"),
        ("ANTHROPIC_API_KEY", "anthropic"),
    ],
)
async def test_a_key_in_the_environment_chooses_the_endpoint(variable: str, endpoint: str) -> None:
    choice = await discover("", LlmSettings(), {variable: f" {SECRET}\n"})
    assert choice.endpoint is not None
    assert choice.endpoint.name == endpoint
    assert choice.model
    assert choice.key is not None
    assert choice.key.secret == SECRET
    assert choice.key_source == variable
    assert SECRET not in repr(choice)


async def test_the_users_own_server_needs_no_key_and_lists_its_models() -> None:
    with FakeEndpoint(says("hi"), models=[{"id": "my-embedder"}, {"id": "duck-7b", "max_model_len": 9000}]) as server:
        choice = await discover("", LlmSettings(), {"OPENAI_BASE_URL": server.url + "/"})
        named = await discover("tagged:7b", LlmSettings(), {"OPENAI_API_BASE": server.url})
    assert (choice.model, choice.key, choice.why.key) == ("duck-7b", None, "model.chosen.address")
    assert choice.endpoint is not None
    assert (choice.endpoint.base_url, choice.endpoint.window) == (server.url, 9000)
    assert named.model == "tagged:7b"
    assert server.paths == ["/v1/models"], "a named model is not looked up"


async def test_a_bare_name_with_a_key_is_for_openai() -> None:
    assert (await discover("gpt-5", LlmSettings(), {"OPENAI_API_KEY": SECRET})).name == "openai:gpt-5"


async def test_a_local_server_that_answers_is_used(nowhere: str) -> None:
    with ExitStack() as stack:
        studio = stack.enter_context(FakeEndpoint(says(""), models=[{"id": "text-embedding-1"}, {"id": "duck"}]))
        vllm = stack.enter_context(FakeEndpoint(says(""), models=[{"id": "goose"}]))
        empty = stack.enter_context(FakeEndpoint(says("")))
        choice = await discover("", alone(nowhere, ollama=empty.url, lmstudio=studio.url, vllm=vllm.url), {})
    assert choice.name == "lmstudio:duck"
    assert choice.why.values == {"server": "lmstudio", "where": studio.url}


@pytest.mark.parametrize(
    "page", ["<html>Ducks for sale</html>", "[]", '{"data": {"id": "x"}}', '{"data": [7, {"id": 7}]}']
)
async def test_another_program_on_the_port_is_not_taken_for_a_model_server(nowhere: str, page: str) -> None:
    with FakeEndpoint(page=page) as shop:
        choice = await discover("", alone(nowhere, **{"llama.cpp": shop.url}), {})
    assert shop.paths == ["/v1/models"]
    assert choice.kind == "embedded"


async def test_without_any_other_model_the_embedded_one_is_used(nowhere: str) -> None:
    choice = await discover("", alone(nowhere), {"HTTP_PROXY": nowhere, "HF_TOKEN": "x"})
    assert (choice.name, choice.why.key) == ("local:qwen2.5-coder-1.5b", "model.chosen.embedded")


async def test_a_server_named_without_a_model_is_asked_for_its_models() -> None:
    with FakeEndpoint(says(""), models=[{"id": "newest"}]) as server:
        assert (await discover("ollama", alone(server.url, ollama=server.url), {})).name == "ollama:newest"


async def test_a_named_server_that_does_not_answer(nowhere: str) -> None:
    with pytest.raises(ProviderUnreachable) as caught:
        await discover("ollama", alone(nowhere), {})
    assert (caught.value.key, caught.value.values["where"]) == ("model.nothing_listens", nowhere)


@pytest.mark.parametrize(
    ("key", "path", "models", "told"),
    [
        ("sk-wrong", "/v1", ["m"], "model.key_refused_alone"),
        ("", "/v1", ["m"], "model.key_missing_alone"),
        (SECRET, "/v2", [], "model.wrong_address"),
        (SECRET, "/v2", ["m"], "model.wrong_address_maybe"),
        (SECRET, "/api", [], "model.wrong_address"),
        (SECRET, "/api", ["m"], "model.wrong_address_maybe"),
        (SECRET, "", ["m"], "model.wrong_address_maybe"),
        ("sk-wrong", "/api/chat/completions", ["m"], "model.wrong_address_maybe"),
        (SECRET, "/v1", [], "model.none_listed"),
    ],
)
async def test_faults_of_the_users_own_server_are_reported_when_no_model_is_named(
    nowhere: str, key: str, path: str, models: list[str], told: str
) -> None:
    with FakeEndpoint(says(""), models=[{"id": name} for name in models], key=SECRET) as server:
        environ = {"OPENAI_BASE_URL": server.url.removesuffix("/v1") + path} | ({"OPENAI_API_KEY": key} if key else {})
        with pytest.raises(ModelError) as caught:
            await discover("", alone(nowhere), environ)
    assert caught.value.key == told
    assert caught.value.values.get("other", server.url) == server.url, "only an address that has answered is named"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1:9999", "http://127.0.0.1:9999/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("https://ducks.example", "https://ducks.example:443/v1"),
    ],
)
async def test_ollama_at_another_address(host: str, url: str) -> None:
    choice = await discover("ollama:x", LlmSettings(), {"OLLAMA_HOST": host})
    assert choice.endpoint is not None
    assert choice.endpoint.base_url == url


def endpoint_of(choice: ModelChoice) -> tuple[str, str, str]:
    assert choice.endpoint is not None
    return choice.name, choice.endpoint.base_url, choice.key_source


async def test_an_endpoint_defined_by_the_user() -> None:
    own = EndpointSettings(base_url="https://llm.example/v1/", key_env="COMPANY_KEY", model="house-model", window=5)
    settings = LlmSettings(model="company", endpoints={"company": own})
    choice = await discover("", settings, {"COMPANY_KEY": "k"})
    assert endpoint_of(choice) == ("company:house-model", "https://llm.example/v1", "COMPANY_KEY")


async def test_a_key_does_not_follow_a_known_name_to_another_address() -> None:
    settings = LlmSettings(endpoints={"openai": EndpointSettings(base_url="https://evil.example/v1")})
    choice = await discover("openai:gpt-5", settings, {"OPENAI_API_KEY": SECRET})
    assert endpoint_of(choice) == ("openai:gpt-5", "https://evil.example/v1", "")


@pytest.mark.parametrize(
    ("name", "environ", "key"),
    [
        ("opnai:gpt-5", {}, "model.unknown_endpoint"),
        ("http://127.0.0.1:9/v1", {}, "model.address_as_name"),
        ("gpt-5", {}, "model.bare_name"),
        ("azure:gpt-5", {}, "model.endpoint_without_address"),
        ("openai:x", {"OPENAI_BASE_URL": "localhost:8000/v1"}, "model.bad_address"),
        ("openai:x", {"OPENAI_BASE_URL": "http://host:port/v1"}, "model.bad_address"),
        ("openai:x", {"OPENAI_API_KEY": "ключ"}, "model.key_malformed"),
    ],
)
async def test_malformed_settings_are_reported(name: str, environ: dict[str, str], key: str) -> None:
    with pytest.raises(UsageError) as caught:
        await discover(name, LlmSettings(), environ)
    assert caught.value.key == key
    if "known" in caught.value.values:
        assert "openrouter, groq" in str(caught.value.values["known"])


@pytest.mark.parametrize(
    "copied",
    [
        SECRET,
        f" {SECRET}\n",
        f'"{SECRET}"',
        f"'{SECRET}'",
        f"OPENAI_API_KEY={SECRET}",
        f'export OPENAI_API_KEY="{SECRET}"',
        f"Bearer {SECRET}",
        f"Authorization: Bearer {SECRET}",
    ],
)
def test_a_key_is_used_without_what_was_copied_along_with_it(copied: str) -> None:
    assert usable_key(copied, "typed").secret == SECRET


def test_a_key_that_only_looks_like_a_variable_stays_whole() -> None:
    assert usable_key("AB_CD==", "typed").secret == "AB_CD=="


async def test_an_endpoint_without_an_address() -> None:
    with pytest.raises(UsageError) as caught:
        await discover("", LlmSettings(endpoints={"mine": EndpointSettings(model="x")}), {})
    assert caught.value.values == {"name": "mine"}
