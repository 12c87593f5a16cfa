"""The page of results says what was recorded, and nothing else."""

from benchmarks.results import PAGE, RECORDED, newest_page


def test_the_page_is_made_of_the_newest_record() -> None:
    assert PAGE.read_text("utf-8") == newest_page()
    assert f"results/{max(RECORDED.glob('*.jsonl')).name}" in PAGE.read_text("utf-8")
