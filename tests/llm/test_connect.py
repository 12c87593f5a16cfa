"""A chosen model becomes a provider that answers."""

import subprocess
import sys
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint, formats_sent, refuses_field, says
from talking import AS_JSON, QUICK, collect, text_of

from duckflow.errors import ProviderRefused, ProviderUnreachable, UsageError
from duckflow.llm.connect import Places, connect
from duckflow.llm.discover import discover
from duckflow.llm.provider import Provider
from duckflow.llm.settings import LocalSettings

NOWHERE = Places(Path("nowhere"))
LIGHT = """
import sys
import duckflow.llm.connect, duckflow.llm.discover
heavy = {"httpx", "keyring", "xllamacpp", "json_repair", "anyio"}
print(sorted(heavy & sys.modules.keys()))
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


async def provider_named(name: str, environ: dict[str, str], places: Places | None = None) -> Provider:
    choice = await discover(name, QUICK, environ)
    return connect(choice, QUICK, LocalSettings(), places or NOWHERE, environ)


async def test_an_endpoint_is_connected_with_its_learned_abilities(tmp_path: Path) -> None:
    memory = tmp_path / "abilities.json"
    with FakeEndpoint(refuses_field("response_format", "no json_schema here", says("{}"))) as server:
        environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-1"}
        for _ in range(2):
            provider = await provider_named("duck-1", environ, Places(tmp_path, abilities=memory))
            assert provider.model == "openai:duck-1"
            assert text_of(await collect(provider, AS_JSON)) == "{}"
    assert formats_sent(server) == ["json_schema!", "json_schema", "json_object", "text", "text"]
    assert server.headers_seen[0]["authorization"] == "Bearer sk-1"
    assert "sk-1" not in memory.read_text()


async def test_a_scripted_model_is_connected(tmp_path: Path) -> None:
    script = tmp_path / "demo.jsonl"
    script.write_text('"quack"\n')
    assert text_of(await collect(await provider_named(f"scripted:{script}", {}))) == "quack"


async def test_a_missing_key_is_reported_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    with pytest.raises(ProviderRefused) as caught:
        await provider_named("openrouter:duck", {})
    assert caught.value.key == "model.key_missing"
    assert caught.value.values["variable"] == "OPENROUTER_API_KEY"
    assert caught.value.values["entry"] == "duckflow openrouter"


async def test_the_embedded_model_without_its_weights_says_so(tmp_path: Path) -> None:
    provider = await provider_named("local:smollm2-135m", {}, Places(tmp_path))
    assert provider.model == "local:smollm2-135m"
    assert provider.window == 8192
    with pytest.raises(ProviderUnreachable):
        await collect(provider)


async def test_an_unknown_embedded_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        await provider_named("local:gpt-9", {}, Places(tmp_path))


def test_looking_for_a_model_imports_nothing_heavy() -> None:
    assert run(LIGHT) == "[]"
