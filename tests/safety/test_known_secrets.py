"""The values of secret files are known in whatever form such files hold them, and no ordinary word becomes one."""

from pathlib import Path

import pytest

from duckflow.safety.secrets import known_secrets

VALUE = "the-plain-passphrase-of-the-pond-7"
FORMS = [
    f"PASSWORD={VALUE}\n",
    f"export DB_PASSWORD='{VALUE}'\n",
    f"set PASSWORD={VALUE}\n",
    f"A=1; PASSWORD={VALUE}\n",
    f"#PASSWORD={VALUE}\n",
    f'{{"db": {{"password": "{VALUE}"}}}}\n',
    f'{{\n "user": "me", "password": "{VALUE}"\n}}\n',
    f"- password: {VALUE}\n",
    f"db: {{user: me, password: {VALUE}}}\n",
    f"password: |\n  {VALUE}\n",
    f"machine x.org login me password {VALUE}\n",
    f"machine x.org\n  login me\n  password {VALUE}\n",
    f"localhost:5432:db:me:{VALUE}\n",
    f"https://me:{VALUE}@x.org\n",
    f"DATABASE_URL=postgres://me:{VALUE}@h/db\n",
    f"//registry.example/:_authToken={VALUE}\n",
    f"me:{VALUE}\n",
    f"{VALUE}\n",
    f'db = {{user="me", password="{VALUE}"}}\n',
    f"\ufeffPASSWORD={VALUE}\n",
    "#" + "x" * 70_000 + f"\nPASSWORD={VALUE}\n",
]


@pytest.mark.parametrize(
    "value", ["Tr0ub4dor,horse-battery-9", "abc;defghijklmnop", "correct horse battery nine", "it's-a-long-one"]
)
@pytest.mark.parametrize("setting", ["PASSWORD={}", 'export DB_PASSWORD="{}"', "  password: {}"])
def test_a_value_is_known_to_its_last_sign(tmp_path: Path, setting: str, value: str) -> None:
    (tmp_path / ".env").write_text(setting.format(value) + "\n")
    assert value in known_secrets(tmp_path, [".env"]).values


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("text", FORMS)
def test_a_value_is_known_in_every_form(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / ".env").write_bytes(text.encode(encoding))
    assert VALUE in known_secrets(tmp_path, [".env"]).values


@pytest.mark.parametrize(
    "text",
    [
        "# password rotation is described elsewhere\n",
        "# the token expires tomorrow\n",
        "DEBUG=true\nLOG_FORMAT=pretty-print\n",
        "HOST=https://service.example/path\n",
        "",
        "one two three\n",
    ],
)
def test_an_ordinary_word_is_no_value(tmp_path: Path, text: str) -> None:
    (tmp_path / ".env").write_text(text)
    assert known_secrets(tmp_path, [".env"]).values == ()
