"""The changes of commands are undone and redone, to the byte."""

import pytest
from playground import Playground

FILES = {
    "main.py": "print('hello')\n",
    "src/a.py": "one\ntwo\n",
    "src/deep/b.py": "three\n",
    "data.bin": bytes(range(256)) * 20,
    "日本語.txt": "これは日本語です。\r\n".encode("cp932"),
    "empty.txt": b"",
    "no newline": "last line has no end",
    "line\nbreak.txt": "a name with a line break\n",
    "\u202egnp.exe": "a name that reads backwards\n",
    " -rf": "a name like an option\n",
}

COMMANDS = {
    "edit": "sed -i 's/hello/goodbye/' main.py",
    "append": "echo more >> 日本語.txt",
    "create": "mkdir -p new/folder && echo made > new/folder/file.txt",
    "create empty folder": "mkdir -p only/folders/here",
    "delete": "rm main.py",
    "delete folder": "rm -r src",
    "delete everything": "find . -mindepth 1 -not -path './.git*' -delete",
    "rename": "mv main.py renamed.py",
    "rename folder": "mv src source",
    "swap": "mv main.py x && mv data.bin main.py && mv x data.bin",
    "file becomes folder": "rm main.py && mkdir main.py && echo in > main.py/inside",
    "folder becomes file": "rm -r src && echo file > src",
    "binary": r"printf '\x00\xff\r\n' >> data.bin",
    "truncate": ": > data.bin",
    "executable": "chmod +x main.py",
    "closed": "chmod 600 main.py && chmod 700 src",
    "read-only folder": "mkdir closed && echo in > closed/file && chmod 555 closed",
    "link": "ln -s main.py link && ln -s /nowhere/at/all broken && ln -s src folder-link",
    "file becomes link": "rm main.py && ln -s src/a.py main.py",
    "folder becomes link": "mv src other && ln -s other src",
    "odd names": "echo x >> $'line\\nbreak.txt'; rm $'\\u202egnp.exe'; rm -- ' -rf'; touch $'\\u202etxt.sh'",
    "broken name": "printf x > $'\\xff\\xfe.txt'; ln -s $'\\xff' $'link\\xff'",
    "hard link": "ln main.py twin.py && echo more >> twin.py",
    "same time and size": 't=$(stat -c %y main.py); printf \'print("HELLO")\\n\' > main.py; touch -d "$t" main.py',
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("tracked", [True, False], ids=["git", "no-git"])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
async def test_a_command_is_undone_and_redone(ground: Playground, command: str, tracked: bool) -> None:
    ground.fill(FILES)
    if tracked:
        ground.commit_all()
    before = ground.picture()
    ground.next_turn()
    await ground.shell(command)
    await ground.there_and_back(before)
