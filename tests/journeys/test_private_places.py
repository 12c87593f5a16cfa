"""Keys, logins and Duckflow's own state stay closed, even where the work folder lies around them."""

from pathlib import Path

import pytest

from duckflow.events.types import ActionFinished
from duckflow.safety.path_names import private_places
from duckflow.safety.sandbox.landlock import OLDEST, version
from duckflow.safety.workspace import Workspace
from duckflow.state.question import Answer, Question
from tests.journeys.story import Story, act, decide, respond

END = decide(respond("ok"), step="PLANNING", next_step="pending_user")
KEY = "the-key-itself"


class Willing(Story):
    """The user trusts the folder and says yes to everything."""

    def answer(self, question: Question) -> Answer:
        return Answer(choice="trust" if question.kind == "choice" else "yes")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The work folder is the home folder."""
    folder = tmp_path / "work"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "id_rsa").write_text(KEY + "\n")
    (folder / ".config" / "gh").mkdir(parents=True)
    (folder / ".config" / "gh" / "hosts.yml").write_text(KEY + "\n")
    (folder / "link").symlink_to(".ssh")
    (folder / "a.txt").write_text("a\n")
    monkeypatch.setenv("HOME", str(folder))
    return folder


REFUSED = [
    act("file_ops.read_file", path=".ssh/id_rsa"),
    act("file_ops.read_file", path="~/.ssh/id_rsa"),
    act("file_ops.read_file", path="link/id_rsa"),
    act("file_ops.read_file", path=".config/gh/hosts.yml"),
    act("file_ops.list_files", path=".ssh"),
    act("file_ops.grep", pattern="key", path=".ssh"),
    act("file_ops.write_file", path=".ssh/authorized_keys", content="x\n"),
    act("file_ops.write_file", path=".aws/credentials", content="x\n"),
    act("file_ops.edit_file", path=".ssh/id_rsa", old="itself", new="x"),
    act("file_ops.make_folder", path=".gnupg"),
    act("file_ops.move_file", source=".ssh/id_rsa", target="key.txt"),
    act("file_ops.move_file", source="a.txt", target=".ssh/config"),
    act("file_ops.move_file", source=".config", target="shown"),
    act("file_ops.delete_file", path=".config", recursive=True),
    act("file_ops.delete_file", path=".ssh/id_rsa"),
]


@pytest.mark.parametrize("action", REFUSED, ids=lambda one: f"{one['operation']} {one['args']}"[9:70])
async def test_every_file_tool_is_refused(tmp_path: Path, home: Path, action: dict[str, object]) -> None:
    before = sorted(home.rglob("*"))
    story = Willing(tmp_path, [decide(action, next_step="continue"), END], mode="full-auto")
    await story.tell("go")
    result = story.all(ActionFinished)[0].result
    assert not result.ok and result.for_user.key == "path.private"
    assert "is private" in story.prompt() and KEY not in story.prompt()
    assert sorted(home.rglob("*")) == before


async def test_a_search_passes_them_by(tmp_path: Path, home: Path) -> None:
    search = decide(act("file_ops.grep", pattern="the-key|a"), step="PLANNING", next_step="continue")
    story = Willing(tmp_path, [search, END], mode="full-auto")
    await story.tell("look")
    assert "a.txt\n1:a" in story.prompt() and KEY not in story.prompt()


KINDS = ["auto", pytest.param("landlock", marks=pytest.mark.skipif(version() < OLDEST, reason="no Landlock here"))]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["cat .ssh/id_rsa", "cat link/id_rsa", "cp -r .config x; cat x/gh/hosts.yml"])
async def test_a_command_does_not_see_them_even_after_a_yes(
    tmp_path: Path, home: Path, command: str, kind: str
) -> None:
    replies = [decide(act("shell.run", command=command), next_step="continue"), END]
    story = Willing(tmp_path, replies, mode="full-auto", settings={"sandbox": {"kind": kind}})
    await story.tell("look")
    assert story.all(ActionFinished) and KEY not in "".join(map(str, story.events)) + story.prompt()


@pytest.mark.parametrize("kind", KINDS)
async def test_commands_still_work_beside_them(tmp_path: Path, home: Path, kind: str) -> None:
    (home / "project").mkdir()
    make = act("shell.run", command="cat a.txt > project/b.txt")
    replies = [decide(make, next_step="continue"), END]
    story = Willing(tmp_path, replies, mode="full-auto", settings={"sandbox": {"kind": kind}})
    await story.tell("make it")
    assert (home / "project" / "b.txt").read_text() == "a\n"


def test_a_link_put_in_place_later_does_not_help(tmp_path: Path, home: Path) -> None:
    """What is open decides, not what the path said before."""
    private = private_places(home, home, ())
    workspace = Workspace(home, private=private)
    (home / "sub").mkdir()
    (home / "sub" / "id_rsa").write_text("mine\n")

    class Swapping(Workspace):
        def relative(self, path: str, follow: bool = True) -> str:
            real = super().relative(path, follow)
            if (home / "sub").is_dir() and not (home / "sub").is_symlink():
                (home / "sub").rename(home / "gone")
                (home / "sub").symlink_to(".ssh")
            return real

    assert workspace.read_bytes("sub/id_rsa", 100) == b"mine\n"
    with pytest.raises(Exception, match=r"path\.private"):
        Swapping(home, private=private).read_bytes("sub/id_rsa", 100)


def test_a_project_below_the_home_folder_has_none(tmp_path: Path, home: Path) -> None:
    (home / "project").mkdir()
    assert private_places(home / "project", home, (home / ".local/share/duckflow",)) == ()
    assert private_places(home, home, (home / "own",)).count(home / "own") == 1
    assert home / ".npmrc" not in private_places(home, home, (), ("~/.npmrc",))
