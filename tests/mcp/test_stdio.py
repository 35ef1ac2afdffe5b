"""`gapless mcp` as a process: how soon it answers, whose memory it shows, and services that come and go meanwhile."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import environment, run_process
from tests.edge.edge_service import eventually, running
from tests.mcp.clients import COMMAND, INITIALIZE, over_stdio, request, said, text_of, tool_call

HEAVY = {"typer", "rich", "mcp", "pydantic", "starlette", "uvicorn", "aiosqlite", "sqlite3", "chromadb", "numpy"}
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


def texts(answers: list[Any]) -> list[str]:
    return [answer["result"]["content"][0]["text"] for answer in sorted(answers, key=lambda answer: answer["id"])]


def test_initialize_costs_a_fraction_of_the_second_that_it_may_take(home: Path) -> None:
    with subprocess.Popen(
        [sys.executable, *COMMAND], env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request("initialize", INITIALIZE)).encode() + b"\n")
        process.stdin.close()
        answer = json.loads(process.stdout.readline())
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert answer["result"]["serverInfo"]["name"] == "gapless"
    assert used.ru_utime + used.ru_stime < 0.4  # of the processor: other programs don't count


def test_nothing_heavy_is_loaded_before_the_first_answer() -> None:
    program = f"import sys, service.cli.mcp; print(sorted({HEAVY!r} & sys.modules.keys()))"
    unmeasured = {
        name: value for name, value in os.environ.items() if not name.startswith("COV")
    }  # coverage has sqlite3
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=unmeasured, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_client_chooses_the_version_of_the_protocol(home: Path, version: str) -> None:
    (answer,) = said(home, request("initialize", INITIALIZE | {"protocolVersion": version}))
    assert answer["result"]["protocolVersion"] == version


@pytest.mark.parametrize("version", ["2026-07-28", "1999-01-01", "", None, 7, ["2025-06-18"], {}])
def test_a_version_that_is_not_ours_is_answered_with_the_newest_that_is(home: Path, version: Any) -> None:
    (answer,) = said(home, request("initialize", INITIALIZE | {"protocolVersion": version}))
    assert answer["result"]["protocolVersion"] == VERSIONS[-1]


def test_a_client_that_asks_for_a_discovery_first_is_told_that_there_is_none(home: Path) -> None:
    (answer,) = said(home, request("server/discover"))
    assert answer["error"]["code"] == -32601


def test_the_same_memory_is_found_by_http_by_command_and_by_tool(home: Path, folder: Path) -> None:
    remembered = said(home, tool_call("remember", text="Why FORGE needs ballast"), cwd=folder)
    assert texts(remembered) == ["Remembered as 1."]
    (found,) = said(home, tool_call("search", query="forge", format="json"), cwd=folder)
    by_command = run_process(home, "search", "forge", "--json", cwd=folder).json
    assert [hit["id"] for hit in found["result"]["structuredContent"]["results"]] == [1]
    assert [hit["id"] for hit in by_command["results"]] == [1]


def test_a_memory_belongs_to_the_project_that_the_client_was_started_in(home: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    (first / "deep" / "er").mkdir(parents=True)
    second.mkdir()
    subprocess.run(["git", "init", "-q", first], check=True)
    said(home, tool_call("remember", text="note of the first"), cwd=first)
    said(home, tool_call("remember", text="note of the second"), cwd=second)
    calls = [tool_call("search", 1, query="note"), tool_call("search", 2, query="note", all_projects=True)]
    calls += [tool_call("search", 3, query="note", project="second"), tool_call("timeline", 4, query="note")]
    own, every, named, around = texts(said(home, *calls, cwd=first / "deep" / "er"))
    assert "note of the first" in own
    assert "note of the second" not in own
    assert "note of the first" in every
    assert "note of the second" in every
    assert "note of the first" not in named
    assert "note of the first" in around
    assert "note of the second" not in around


def test_a_folder_of_the_same_name_is_another_project(home: Path, tmp_path: Path) -> None:
    for parent in ("a", "b"):
        (tmp_path / parent / "app").mkdir(parents=True)
        said(home, tool_call("remember", text=f"note of {parent}"), cwd=tmp_path / parent / "app")
    (found,) = texts(said(home, tool_call("search"), cwd=tmp_path / "b" / "app"))
    assert "note of b" in found
    assert "note of a" not in found


def test_the_environment_says_whose_memory_it_is(home: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    said(home, tool_call("remember", text="note of the first"), cwd=second, CLAUDE_PROJECT_DIR=str(first))
    said(home, tool_call("remember", text="note of nobody"), cwd=second, GAPLESS_PROJECT="third")
    for variables, words in (
        ({"CLAUDE_PROJECT_DIR": str(first)}, "note of the first"),
        ({"GAPLESS_PROJECT": "first"}, "note of the first"),
        ({"GAPLESS_PROJECT": "third", "CLAUDE_PROJECT_DIR": str(first)}, "note of nobody"),
        ({}, "0 of 0"),
    ):
        (found,) = texts(said(home, tool_call("search"), cwd=second, **variables))
        assert words in found


def test_forgetting_by_words_stays_in_the_own_project(home: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        said(home, tool_call("remember", text="note of the boat"), cwd=folder)
    (told,) = texts(said(home, tool_call("forget", query="boat"), cwd=first))
    assert told.startswith("Forgotten: 1 observations")
    (left,) = texts(said(home, tool_call("search", all_projects=True), cwd=first))
    assert "note of the boat" in left


async def test_a_session_outlives_the_service_beside_it(home: Path, folder: Path) -> None:
    async with over_stdio(home, folder) as client:

        async def find() -> str:
            return text_of(await client.call_tool("search", {"query": "forge"}))

        await client.call_tool("remember", {"text": "The FORGE port is 7001"})
        assert "FORGE" in await find()
        async with running(home, chroma="off") as service:
            asked = dict(service.edge.traffic.requests)
            assert "FORGE" in await find()
            assert service.edge.traffic.requests.keys() - asked.keys() == {("POST", 200)}
        assert "FORGE" in await find()
        async with running(home, chroma="off"):
            assert "FORGE" in await find()


async def test_what_is_read_in_full_is_counted_with_the_service_and_without(home: Path, folder: Path) -> None:
    async with over_stdio(home, folder) as client:
        await client.call_tool("remember", {"text": "The FORGE port is 7001"})
        await client.call_tool("search", {"query": "forge"})
        await client.call_tool("get_observations", {"ids": [1]})
        async with running(home, chroma="off") as service:

            async def counted(times: int) -> bool:
                signals = service.rows("SELECT observation_id, signal_type FROM observation_feedback")
                return signals == [(1, "fetched")] * times

            assert await counted(1)
            await client.call_tool("get_observations", {"ids": [1]})
            await eventually(lambda: counted(2))


def test_without_a_service_a_search_says_that_it_went_by_words_alone(home: Path, folder: Path) -> None:
    (home / "chroma").mkdir()
    said(home, tool_call("remember", text="The FORGE port is 7001"), cwd=folder)
    (found,) = texts(said(home, tool_call("search", query="forge"), cwd=folder))
    assert found.startswith("1 of 1 (keyword); degraded: vectors: ")
    assert "`gapless up`" in found
    assert not list((home / "run").glob("vectors*"))


def test_nothing_but_answers_is_on_standard_output_and_they_end_with_the_input(home: Path) -> None:
    answers = said(
        home,
        b"",
        b"   ",
        b"no json",
        request("initialize", INITIALIZE),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "no/such/notification"},
        {"jsonrpc": "2.0", "id": 9, "result": {}},
        request("ping", number="two"),
    )
    assert sorted(str(answer["id"]) for answer in answers) == ["1", "None", "two"]


def test_several_messages_in_an_array_are_answered_in_an_array(home: Path) -> None:
    (answers,) = said(
        home, [request("ping", number=1), {"jsonrpc": "2.0", "method": "x"}, request("ping", number=2), 3]
    )
    assert [answer["id"] for answer in answers] == [1, 2, None]


def test_a_message_that_is_too_long_is_refused_and_the_next_one_answered(home: Path) -> None:
    long = json.dumps(request("ping")).encode() + b" " * (16 * 1024 * 1024)
    refused, pong = said(home, long, request("ping", number=2))
    assert "bytes" in refused["error"]["message"]
    assert pong == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_a_setting_that_is_wrong_is_told_by_the_tool(home: Path) -> None:
    (home / "settings.toml").write_text("CONSUMRES = 3\n")
    (answer,) = said(home, tool_call("search"))
    assert answer["result"]["isError"] is True
    assert "CONSUMERS" in texts([answer])[0]


def test_a_folder_that_is_gone_is_told_by_the_tool(home: Path, folder: Path) -> None:
    script = f"import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, [sys.executable, *{COMMAND!r}])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(tool_call("search")).encode(),
        env=environment(home),
        cwd=folder,
        capture_output=True,
        timeout=30,
        check=True,
    )
    assert "is gone" in texts([json.loads(done.stdout)])[0]


def test_a_data_folder_that_cannot_be_used_is_told_by_the_tool(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (answer,) = said(tmp_path / "file" / "home", tool_call("search"))
    assert answer["result"]["isError"] is True
    assert "Traceback" not in texts([answer])[0]


def test_a_client_that_goes_away_is_no_bug(home: Path) -> None:
    with subprocess.Popen(
        [sys.executable, *COMMAND],
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(json.dumps(request("ping")).encode() + b"\n")
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_it_at_once(home: Path) -> None:
    import signal

    with subprocess.Popen(
        [sys.executable, *COMMAND], env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request("ping")).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=5) == -signal.SIGINT
