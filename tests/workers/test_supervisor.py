"""All workers of a process together: from events to observations, through crashes, to an orderly stop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from service import due, liveness
from service.clock import now_ms
from service.core import Core
from service.settings import load, stamp_of
from tests.conftest import until
from tests.store.desk import Desk
from workers.supervisor import Workers


@asynccontextmanager
async def running(core: Core) -> AsyncIterator[Workers]:
    workers = Workers(core)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(workers.run())
        try:
            yield workers
        finally:
            workers.stop.set()


async def turn(desk: Desk, number: int) -> None:
    at = number * 60_000
    path = f"/nowhere/shop/cart_{number}.py"
    await desk.prompt(f"write part {number} of the cart", at_ms=at)
    await desk.tool(
        at_ms=at + 1,
        tool_name="Write",
        tool_use_id=f"w{number}",
        tool_input={"file_path": path, "content": f"total = {number}\n"},
        tool_response={"type": "create", "filePath": path},
    )
    await desk.stop(at_ms=at + 2, last_assistant_message=f"Part {number} of the cart is written.")


async def idle(desk: Desk) -> bool:
    states = await desk.states()
    return states.get("pending", 0) + states.get("processing", 0) == 0


async def test_events_become_observations_that_name_the_edited_files(desk: Desk) -> None:
    async with running(desk.core) as workers:
        for number in range(3):
            await turn(desk, number)
        workers.wake.set()
        await until(lambda: idle(desk))
    files = " ".join(row[0] for row in await desk.rows("SELECT files_modified FROM observations"))
    assert all(f"cart_{number}.py" in files for number in range(3))
    assert await desk.value("SELECT count(*) FROM session_summaries") == 3
    assert await desk.states() == {"done": 6}


async def test_what_a_dead_worker_held_is_worked_at_the_next_start_without_waiting(desk: Desk) -> None:
    await turn(desk, 1)
    await desk.claimed(worker="4711-dead")
    assert await desk.states() == {"processing": 2}
    async with running(desk.core):
        await until(lambda: idle(desk), within_s=10)
    assert await desk.rows("SELECT state, crashes FROM pending_messages") == [("done", 1)] * 2


async def test_what_a_living_worker_holds_is_left_to_it(desk: Desk) -> None:
    await turn(desk, 1)
    with liveness.worker_identity(desk.core.configuration.run) as alive:
        await desk.claimed(worker=alive)
        dead = liveness.dead_workers(desk.core.configuration.run, [alive, "4711-dead"])
    assert dead == ["4711-dead"]


async def test_an_orderly_stop_leaves_nothing_in_work(desk: Desk) -> None:
    async with running(desk.core):
        for number in range(5):
            await turn(desk, number)
    assert "processing" not in await desk.states()


async def test_after_a_stop_a_new_start_goes_on(desk: Desk) -> None:
    await turn(desk, 1)
    async with running(desk.core):
        pass
    await turn(desk, 2)
    async with running(desk.core):
        await until(lambda: idle(desk))
    assert await desk.states() == {"done": 4}


@pytest.mark.slow
async def test_a_silent_session_is_closed_and_summarised_by_itself(desk: Desk) -> None:
    await desk.core.close()
    settings = {"GAPLESS_SESSION_IDLE_MIN": "0.005", "GAPLESS_CHROMA": "off"}
    core = Core.open(load(home=desk.core.configuration.home, environment=settings))
    impatient = Desk(core, desk.payload)
    try:
        async with running(core):
            await impatient.prompt("write the cart")
            await impatient.tool(at_ms=1)

            async def closed() -> bool:
                rows = await impatient.rows("SELECT status FROM sessions")
                return rows == [("closed",)] and await idle(impatient)

            await until(closed)
        hooks = await impatient.rows("SELECT hook_event FROM pending_messages WHERE message_type = 'summary'")
        assert hooks == [("SessionIdle",)]
    finally:
        await core.close()
        desk.core.database = Core.open(desk.core.configuration).database


async def test_dead_letters_are_not_worked_at_start(desk: Desk) -> None:
    for number in range(30):
        await desk.tool(at_ms=number)
    await desk.core.database.write(
        lambda tx: tx.run(
            "UPDATE pending_messages SET state = 'failed', reason = 'malformed', finished_at_epoch = :now",
            {"now": now_ms()},
        )
    )
    await desk.core.database.write(lambda tx: due.flush(tx, now=now_ms()))
    async with running(desk.core) as workers:
        workers.wake.set()

        async def nothing_due() -> bool:
            return bool(await desk.value("SELECT due_at_epoch IS NULL FROM sessions"))

        await until(nothing_due)
    assert await desk.states() == {"failed": 30}


async def test_workers_begin_anew_under_a_settings_file_that_was_changed_by_hand(desk: Desk) -> None:
    async with running(desk.core):
        await until(lambda: consumers_run(desk.core))
        (desk.core.configuration.home / "settings.toml").write_text("MAX_ATTEMPTS = 7\n")
        await until(lambda: attempts_are(desk.core, 7))
        await turn(desk, 1)
        await until(lambda: idle(desk))


async def test_a_settings_file_that_cannot_be_used_changes_nothing(desk: Desk) -> None:
    async with running(desk.core):
        await until(lambda: consumers_run(desk.core))
        path = desk.core.configuration.home / "settings.toml"
        path.write_text("MAX_ATTEMPT = 7\n")
        await until(lambda: is_seen(desk.core, path))
        await turn(desk, 1)
        await until(lambda: idle(desk))
    assert desk.core.settings.max_attempts == 3


async def consumers_run(core: Core) -> bool:
    return bool(liveness.live_workers(core.configuration.run))


async def attempts_are(core: Core, number: int) -> bool:
    return core.settings.max_attempts == number


async def is_seen(core: Core, path: Path) -> bool:
    return core.configuration.file_stamp == stamp_of(path)
