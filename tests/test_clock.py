"""A time limit stands still while it is held, and goes on with the time that was left."""

import asyncio

import pytest

from duckflow.clock import PausableTimeout


async def test_time_is_not_counted_while_anyone_holds_it() -> None:
    async with asyncio.timeout(0.2) as limit:
        clock = PausableTimeout(limit)
        with clock.standing_still():
            left = clock.left()
            with clock.standing_still():
                await asyncio.sleep(0.15)
            assert clock.stands_still, "one of the two still holds it"
            await asyncio.sleep(0.15)
            assert clock.left() == left
        assert not clock.stands_still and 0 < clock.left() <= 0.2


async def test_the_remaining_time_runs_out_afterwards() -> None:
    began = asyncio.get_running_loop().time()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1) as limit:
            with PausableTimeout(limit).standing_still():
                await asyncio.sleep(0.2)
            await asyncio.sleep(30)
    assert 0.25 < asyncio.get_running_loop().time() - began < 10


async def test_without_a_limit_nothing_ends() -> None:
    async with asyncio.timeout(None) as limit:
        clock = PausableTimeout(limit)
        with clock.standing_still():
            await asyncio.sleep(0)
        assert limit.when() is None and clock.left() == 0


async def test_work_that_ended_meanwhile_needs_no_limit_any_more() -> None:
    async with asyncio.timeout(30) as limit:
        clock = PausableTimeout(limit)
        clock.hold()
        await asyncio.sleep(0)
    clock.release()
    assert not clock.stands_still
