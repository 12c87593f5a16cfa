"""Making folders."""

from acting import Hands


async def test_a_folder_is_made_with_those_above_it(hands: Hands) -> None:
    preview = hands.preview("make_folder", path="a/b")
    assert [(impact.path, impact.change) for impact in preview.impacts] == [("a/b/", "folder")]
    done = await hands.do("make_folder", path="a/b")
    assert (done.changed, done.for_user.key) == (("a/b",), "file.folder_made")
    assert (hands.folder / "a/b").is_dir()


async def test_one_that_exists_is_fine_and_changes_nothing(hands: Hands) -> None:
    (hands.folder / "a").mkdir()
    assert hands.preview("make_folder", path="a").impacts == ()
    done = await hands.do("make_folder", path="a")
    assert (done.changed, done.for_user.key) == ((), "file.folder_exists")


async def test_a_file_in_the_way_is_an_error(hands: Hands) -> None:
    hands.put("a.txt", "a")
    assert (await hands.refused("make_folder", path="a.txt")).key == "file.exists"
    assert (await hands.refused("make_folder", path="a.txt/b")).key == "file.not_folder"
    assert (await hands.refused("make_folder", path="../b")).key == "path.outside"
