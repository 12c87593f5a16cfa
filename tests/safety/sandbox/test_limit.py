"""A sandbox in which a command may change only some files and folders of the work folder."""

import subprocess
from dataclasses import replace

import pytest
from yard import Ran, Yard

from duckflow.safety.sandbox.bubblewrap import MOST_REPOSITORIES
from duckflow.safety.sandbox.paths import SandboxPaths
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.seatbelt import profile
from duckflow.safety.sandbox.settings import SandboxSettings

KINDS = ("bubblewrap", "landlock")


def limited(place: Yard, kind: str, *limit: str, **settings: tuple[str, ...]) -> Sandbox:
    for name in ("src/deep", "docs"):
        (place.folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("src/a", "docs/a", "a"):
        (place.folder / name).write_text("old\n")
    sandbox = place.sandbox(SandboxSettings.model_validate({"kind": kind, **settings}))
    assert sandbox.kind == kind
    return sandbox.within(limit)


def changed(place: Yard) -> list[str]:
    """Returns the files that a command has written to, and those that it has made."""
    files = [path for path in place.folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    return sorted(str(path.relative_to(place.folder)) for path in files if path.read_text() != "old\n")


EACH = "for name in src/a src/deep/new docs/a docs/new a new; do echo new > $name; done"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("limit", "writes"),
    [
        (("src",), ["src/a", "src/deep/new"]),
        (("src/deep", "a"), ["a", "src/deep/new"]),
        (("src", "src/a", "docs/a"), ["docs/a", "src/a", "src/deep/new"]),
        (("./src/",), ["src/a", "src/deep/new"]),
        (("new", "docs/new"), []),
        (("src/../docs", "..", ".", "", "/", "~", "*"), []),
        ((), []),
    ],
)
def test_only_what_the_limit_names_can_be_written(
    place: Yard, kind: str, limit: tuple[str, ...], writes: list[str]
) -> None:
    place.run(limited(place, kind, *limit), EACH)
    assert changed(place) == writes


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_leads_elsewhere_opens_nothing(place: Yard, kind: str) -> None:
    for name, target in (("way", "docs"), ("out", str(place.outside)), ("one", "a")):
        (place.folder / name).symlink_to(target)
    sandbox = limited(place, kind, "way", "out", "one", "way/a", str(place.outside), "../outside")
    place.run(sandbox, f"{EACH}; echo new > way/a; echo new > one; echo new > out/file; echo new > $O/file")
    assert changed(place) == [] and (place.outside / "file").read_text() == "as it was\n"


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_limit_opens_cannot_be_taken_away(place: Yard, kind: str) -> None:
    place.run(
        limited(place, kind, "src", "a"), "mv src gone; rm -rf src; ln -s docs src; rm a; mv a b; ln -sf docs/a a"
    )
    assert (place.folder / "src").is_dir() and (place.folder / "a").read_text() == "old\n"
    assert not (place.folder / "src").is_symlink() and not (place.folder / "a").is_symlink()


@pytest.mark.parametrize("kind", KINDS)
def test_folders_that_the_settings_open_stay_open_beside_the_work_folder_alone(place: Yard, kind: str) -> None:
    shared, around = str(place.outside / "folder"), str(place.top)
    sandbox = limited(place, kind, "src", writable=("docs", shared, ".", around))
    place.run(sandbox, f"{EACH}; echo new > $O/folder/new")
    assert changed(place) == ["src/a", "src/deep/new"] and (place.outside / "folder/new").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_without_writes_the_limit_opens_nothing(place: Yard, kind: str) -> None:
    place.run(limited(place, kind, "src"), EACH, writes=False)
    assert changed(place) == []


@pytest.mark.parametrize("limit", ["src", ".git", ".git/hooks", "src/.git", "src/.git/config", ".git/objects"])
def test_git_runs_nothing_new_within_the_limit(place: Yard, limit: str) -> None:
    sandbox = limited(place, "bubblewrap", limit)
    for folder in (place.folder, place.folder / "src"):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    placed = [f"{top}/.git/{name}" for top in (".", "src") for name in ("hooks/pre-commit", "config")]
    place.run(sandbox, "; ".join(f"echo bad >> {name}" for name in placed) + "; mv src/.git gone; mv .git gone")
    assert not any("bad" in path.read_text() for name in placed if (path := place.folder / name).exists())
    assert (place.folder / "src/.git").is_dir() and (place.folder / ".git").is_dir()


def test_many_repositories_are_guarded_within_the_limit_too(place: Yard) -> None:
    sandbox = limited(place, "bubblewrap", "top7", "src")
    for number in range(MOST_REPOSITORIES + 1):
        subprocess.run(["git", "init", "-q", str(place.folder / f"top{number}")], check=True)
    written = "for name in top*; do echo new > $name/new; echo bad > $name/.git/hooks/pre-commit; done"
    place.run(sandbox, f"{written}; {EACH}")
    assert changed(place) == ["src/a", "src/deep/new", "top7/new"]
    assert not list(place.folder.glob("top*/.git/hooks/pre-commit"))


def test_a_folder_for_which_the_work_folder_stands_in_is_limited_too(place: Yard) -> None:
    sandbox = limited(place, "bubblewrap", "src")
    sandbox = sandbox.reaching(replace(sandbox.paths, stand_ins=((place.folder, place.home),)))
    place.run(sandbox, f"cd {place.home} && {EACH}")
    assert changed(place) == []


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_within_the_limit_stay_covered(place: Yard, kind: str) -> None:
    sandbox = limited(place, kind, "src", ".env")
    for name in (".env", "src/.env"):
        (place.folder / name).write_text("old\n")
    ran = place.run(sandbox, f"{EACH}; cat .env src/.env | grep old" if kind == "bubblewrap" else EACH)
    assert changed(place) == ["src/a", "src/deep/new"] and "old" not in ran.output


@pytest.mark.parametrize("kind", KINDS)
def test_within_the_limit_files_are_copied_and_their_modes_changed_as_ever(place: Yard, kind: str) -> None:
    python = "$PYTHON -I -c \"import shutil; shutil.copy2('src/a', 'src/c')\""
    copied = f"cp src/a src/b && {python} && chmod 755 src/a && touch src/a src/new"
    ran = place.run(limited(place, kind, "src"), copied)
    assert ran == Ran(0, "", ())


def test_landlock_does_not_hold_modes_and_times(place: Yard) -> None:
    """It is documented so: the kernel does not tell whose they are, and copying files sets them."""
    place.run(limited(place, "landlock", "src"), "chmod 755 a")
    assert (place.folder / "a").stat().st_mode & 0o111
    place.run(limited(place, "bubblewrap", "src"), "chmod 600 a")
    assert (place.folder / "a").stat().st_mode & 0o111


def test_the_profile_for_macos_opens_what_the_limit_names(place: Yard) -> None:
    (place.folder / "src").mkdir()
    paths = SandboxPaths(place.folder, place.home, SandboxSettings(), limit=("src", "docs"))
    (allowed,) = [
        line for line in profile(paths, False, True).splitlines() if line.startswith("(allow file-write* (sub")
    ]
    assert f'(subpath "{place.folder}/src")' in allowed and f'"{place.folder}")' not in allowed
    assert "docs" not in allowed
