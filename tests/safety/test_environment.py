"""The environment variables that a command sees."""

import pytest

from duckflow.safety.environment import caches, environment

GIVEN = {
    "PATH": "/usr/bin:/home/duck/.npm-packages-of-all-kinds/bin",
    "HOME": "/home/duck",
    "LC_ALL": "ja_JP.UTF-8",
    "TERM": "xterm-256color",
    "VIRTUAL_ENV": "/venv",
    "OPENAI_API_KEY": "sk-aaaaaaaaaaaaaaaaaaaaaaaa",
    "DATABASE_URL": "postgres://duck:pond@db/app",
    "SSH_AUTH_SOCK": "/run/user/1000/ssh",
    "MY_FLAG": "1",
    "MY_TOKEN": "abc",
    "MY_HOST": "https://duck:pond@example.org",
    "https_proxy": "http://proxy:3128",
    "HTTP_PROXY": "http://duck:pond@proxy:3128",
}


def test_a_command_sees_only_the_variables_it_needs() -> None:
    seen = environment(GIVEN)
    assert {name for name in GIVEN if name in seen} == {"PATH", "HOME", "LC_ALL", "TERM", "VIRTUAL_ENV"}
    assert seen["TERM"] == "dumb"
    assert seen["PATH"] == GIVEN["PATH"]


@pytest.mark.parametrize(
    ("also", "seen"),
    [
        (("MY_*",), {"MY_FLAG"}),
        (("MY_*", "MY_TOKEN"), {"MY_FLAG", "MY_TOKEN"}),
        (("*",), {"MY_FLAG"}),
        (("my_flag",), set[str]()),
    ],
)
def test_settings_add_variables_but_a_secret_only_by_its_full_name(also: tuple[str, ...], seen: set[str]) -> None:
    added = environment(GIVEN, also).keys() - environment(GIVEN).keys() - {"https_proxy"}
    assert added == seen


def test_a_proxy_is_seen_with_the_network_and_without_a_password() -> None:
    assert "https_proxy" not in environment(GIVEN)
    seen = environment(GIVEN, network=True)
    assert seen["https_proxy"] == "http://proxy:3128" and "HTTP_PROXY" not in seen


def test_caches_move_where_commands_can_write_unless_they_have_a_place() -> None:
    assert caches({"GOCACHE": "/elsewhere"}, "/tmp") == {"UV_CACHE_DIR": "/tmp/uv", "npm_config_cache": "/tmp/npm"}
