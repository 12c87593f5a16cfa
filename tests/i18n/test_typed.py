"""What counts as a word about running work, and what does not."""

import pytest

from duckflow.i18n.typed import means_stop, read_line, split_pause, wish_in
from duckflow.state.agent import AgentState, Job, JobStatus
from tests.i18n.stop_words import NO_PAUSES, PAUSES, PAUSES_WITH_MORE


def state(status: JobStatus = "running") -> AgentState:
    job = Job(name="core", plan_id="p", status=status)
    return AgentState(jobs={job.job_id: job})


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("How far is it?", "progress"),
        ("how's it going", "progress"),
        ("どこまで進んだ？", "progress"),
        ("進捗を教えて", "progress"),
        ("もう終わった？", "progress"),
        ("Pause the job, please", "pause"),
        ("pause the job please", "pause"),
        ("ちょっと待って", "pause"),
        ("hold on, pause it for a moment", "pause"),
        ("can you put it on hold for now?", "pause"),
        ("いったん中断しておいてください", "pause"),
        ("hang on a moment please, I want to check something in the spec first", "pause"),
        ("wait, we have to look at what the other team did", "pause"),
        ("ちょっと待って、先にテストを見たいので", "pause"),
        ("wait, I want you to use tabs", None),
        ("wait, what does f do", None),
        ("hold the lock while writing", None),
        ("go on and fix the tests", None),
        ("待ち時間を表示して", None),
        ("cancel", "cancel"),
        ("ジョブをキャンセルしてください。", "cancel"),
        ("how far is the moon from the earth, in kilometres?", None),
        ("pause the music when the window loses focus", None),
        ("終わったらテストも書いて", None),
        ("cancel button must be red", None),
        ("resume", None),
        ("continue", None),
    ],
)
def test_words_about_a_running_job(text: str, wish: str | None) -> None:
    assert wish_in(text, state()) == wish


@pytest.mark.parametrize(
    "text", ["resume", "continue", "ok, go on", "let it run on", "再開", "続けて", "じゃあ続きをお願いします"]
)
def test_words_for_going_on_mean_a_job_only_when_one_has_stopped(text: str) -> None:
    assert wish_in(text, state("interrupted")) == wish_in(text, state("paused")) == "resume"
    assert wish_in(text, state("completed")) is None
    assert wish_in(text, AgentState()) is None
    asked = state("paused")
    asked.asked = "Shall I rename it?"
    assert wish_in(text, asked) is None, "it answers what the model has asked"


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("/etc/hosts says what?", "message"),
        ("／tmp／a.py を読んで", "message"),
        ("/status", "command"),
        ("/", "command"),
    ],
)
def test_a_line_that_begins_with_a_path_is_a_message(line: str, meaning: str) -> None:
    assert read_line(line, AgentState(), (), ()) == meaning


@pytest.mark.parametrize("text", PAUSES)
def test_words_that_pause_running_work(text: str) -> None:
    assert wish_in(text, state()) == "pause" and split_pause(text, state()) is None
    assert means_stop(text, "en"), "a turn stops at them, too"


@pytest.mark.parametrize(("text", "rest"), PAUSES_WITH_MORE.items())
def test_words_that_pause_running_work_and_say_more(text: str, rest: str) -> None:
    split = split_pause(text, state())
    assert wish_in(text, state()) is None and split and split.rest == rest
    assert split_pause(text, state("paused")) is None


@pytest.mark.parametrize("text", NO_PAUSES)
def test_words_that_only_look_like_a_pause(text: str) -> None:
    assert wish_in(text, state()) is None and split_pause(text, state()) is None
