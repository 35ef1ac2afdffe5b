"""One compression over real HTTP: what is sent, what comes back, what is asked again."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from service.errors import BadAnswer, ProviderPaused
from service.models import Usage
from tests.compressors.batches import API_KEY, make_batch, make_message, make_prompt, make_stop
from tests.fakes.messages_api import MessagesApi, Scripted, called, error, message, prose, text, tool_use
from workers.compressors.anthropic import AnthropicCompressor

ROOT = Path(__file__).parents[2]
FOUND = {"type": "bugfix", "title": "Retry loop ends", "narrative": "It counted from the wrong end.", "events": [1]}
SUMMARY = {"request": "Fix the loop", "completed": "The loop ends", "next_steps": ""}


async def test_a_batch_becomes_observations_with_their_events_and_their_share_of_the_tokens(
    api: MessagesApi, compressor: AnthropicCompressor
) -> None:
    other = FOUND | {"title": "Timeouts are in seconds", "type": "discovery", "events": [1, 2]}
    usage = {"input_tokens": 100, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 3, "output_tokens": 50}
    api.script(called({"observations": [FOUND, other], "nothing_to_record": False}, usage))

    compressed = await compressor.compress(make_batch(make_message(7), make_message(8)), strict=False)

    assert [(o.type, o.title, o.message_ids) for o in compressed.observations] == [
        ("bugfix", "Retry loop ends", (7,)),
        ("discovery", "Timeouts are in seconds", (7, 8)),
    ]
    assert [o.discovery_tokens for o in compressed.observations] == [173 // 2, 173 // 2]
    assert compressed.usage == Usage(calls=1, input_tokens=123, output_tokens=50)


async def test_the_tool_is_forced_strict_and_asked_for_a_summary_only_at_the_end_of_a_turn(
    api: MessagesApi, compressor: AnthropicCompressor
) -> None:
    await compressor.compress(make_batch(), strict=False)
    await compressor.compress(make_batch(make_message(), make_stop()), strict=False)

    during, ended = (request.body for request in api.requests)
    assert during["tool_choice"] == {
        "type": "tool",
        "name": during["tools"][0]["name"],
        "disable_parallel_tool_use": True,
    }
    assert during["tools"][0]["strict"] is True
    schema = during["tools"][0]["input_schema"]
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"]) == ["observations", "nothing_to_record"]
    assert list(ended["tools"][0]["input_schema"]["properties"])[-1] == "summary"


async def test_the_system_prompt_is_cached_and_the_same_for_every_batch(
    api: MessagesApi, compressor: AnthropicCompressor
) -> None:
    await compressor.compress(make_batch(), strict=False)
    await compressor.compress(make_batch(make_message(2, tool_name="Read"), make_stop()), strict=True)

    first, second = (request.body["system"] for request in api.requests)
    assert first == second
    assert first[0]["cache_control"] == {"type": "ephemeral"}


async def test_nothing_of_the_environment_reaches_a_request(
    api: MessagesApi, make_compressor: Callable[..., AnthropicCompressor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "ambient-token")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "ambient-key")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Ambient: ambient-header\nAuthorization: Bearer ambient-bearer")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    await make_compressor().compress(make_batch(), strict=False)

    sent = api.requests[0].headers
    assert "ambient" not in str(sent)
    assert API_KEY in sent.get("authorization", sent.get("x-api-key", ""))


async def test_a_redirect_is_not_followed_with_the_payload(api: MessagesApi, compressor: AnthropicCompressor) -> None:
    async with MessagesApi() as stranger:
        api.script(Scripted(status=307, headers={"location": f"{stranger.url}/v1/messages"}, body={}))
        with pytest.raises(ProviderPaused) as paused:
            await compressor.compress(make_batch(), strict=False)
        assert paused.value.reason == "settings"
        assert stranger.requests == []


async def test_the_strict_question_is_narrower_and_does_not_quote_the_bad_answer(
    api: MessagesApi, compressor: AnthropicCompressor
) -> None:
    api.script(prose("As an expert assistant I would love to chat about flamingos instead."))
    batch = make_batch()
    with pytest.raises(BadAnswer) as bad:
        await compressor.compress(batch, strict=False)
    await compressor.compress(batch, strict=True)

    assert (bad.value.kind, bad.value.calls, bad.value.input_tokens) == ("malformed", 1, 1000)
    assert "flamingos" not in str(bad.value)
    assert "flamingos" not in api.requests[1].raw.decode()
    assert len(api.requests[1].body["messages"]) == 1
    assert "exactly once" in api.requests[1].content
    assert "exactly once" not in api.requests[0].content


async def test_nothing_worth_recording_in_words_or_by_the_flag_is_a_valid_empty_answer(
    api: MessagesApi, compressor: AnthropicCompressor
) -> None:
    api.script(prose("Nothing worth recording."), called({"observations": [], "nothing_to_record": True}))
    for _ in range(2):
        compressed = await compressor.compress(make_batch(make_message(), make_stop()), strict=False)
        assert (compressed.observations, compressed.summary, compressed.usage.calls) == ((), None, 1)


async def test_a_forgotten_summary_is_asked_for_once_alone_and_its_call_is_counted(
    api: MessagesApi, compressor: AnthropicCompressor
) -> None:
    api.script(called({"observations": [FOUND]}), Scripted(body=message(tool_use(SUMMARY, "record_summary"))))

    long = make_message(1, payload={"tool_response": "many words " * 9_000})
    compressed = await compressor.compress(make_batch(long, make_stop(2)), strict=False)

    assert [o.title for o in compressed.observations] == ["Retry loop ends"]
    assert compressed.summary
    assert (compressed.summary.completed, compressed.summary.message_ids) == ("The loop ends", (2,))
    assert compressed.usage == Usage(calls=2, input_tokens=2000, output_tokens=400)
    assert len(api.requests[1].content) < len(api.requests[0].content) / 2
    assert api.requests[1].tool["name"] == api.requests[1].body["tool_choice"]["name"] == "record_summary"


@pytest.mark.parametrize(
    "second",
    [
        prose("Here is what happened today."),
        Scripted(body=message(tool_use({}, "record_summary"))),
        error(529, "overloaded_error", "Overloaded"),
        Scripted(body=b"<html>"),
        Scripted(drop=True),
    ],
    ids=["prose", "empty", "overloaded", "html", "dropped"],
)
async def test_observations_are_kept_when_the_summary_fails_twice(
    api: MessagesApi, compressor: AnthropicCompressor, second: Scripted
) -> None:
    api.script(called({"observations": [FOUND]}), second, second)

    compressed = await compressor.compress(make_batch(make_message(1), make_stop(2)), strict=False)

    assert [o.title for o in compressed.observations] == ["Retry loop ends"]
    assert compressed.summary is None


async def test_a_cut_connection_is_tried_again_at_once_and_only_once(
    api: MessagesApi, compressor: AnthropicCompressor
) -> None:
    api.script(Scripted(cut=True), called({"observations": [FOUND]}))
    compressed = await compressor.compress(make_batch(), strict=False)
    assert compressed.usage.calls == len(api.requests) == 2

    api.script(Scripted(cut=True), Scripted(drop=True))
    with pytest.raises(ProviderPaused) as paused:
        await compressor.compress(make_batch(), strict=False)
    assert (paused.value.reason, paused.value.calls, len(api.requests)) == ("unreachable", 2, 4)


async def test_a_hanging_provider_is_left_after_the_timeout_and_not_tried_again(
    api: MessagesApi, make_compressor: Callable[..., AnthropicCompressor]
) -> None:
    compressor = make_compressor(timeout_s=0.4)
    api.script(Scripted(hang=True))

    with pytest.raises(ProviderPaused, match=r"within 0\.4 s") as paused:
        await compressor.compress(make_batch(), strict=False)

    assert (paused.value.reason, paused.value.calls, len(api.requests)) == ("unreachable", 1, 1)


async def test_a_slow_summary_shares_the_time_of_its_batch(
    api: MessagesApi, make_compressor: Callable[..., AnthropicCompressor]
) -> None:
    await make_compressor().compress(make_batch(), strict=False)  # loads the SDK, outside the time that counts
    compressor = make_compressor(timeout_s=1.6)
    api.script(Scripted(delay_s=1.2, body=called({"observations": [FOUND]}).body), Scripted(hang=True))
    started = asyncio.get_running_loop().time()

    compressed = await compressor.compress(make_batch(make_message(), make_stop()), strict=False)

    assert compressed.observations
    assert asyncio.get_running_loop().time() - started < 2.4


async def test_nobody_listening_pauses_as_unreachable_and_spends_nothing(
    make_compressor: Callable[..., AnthropicCompressor],
) -> None:
    async with MessagesApi() as gone:
        url = gone.url
    with pytest.raises(ProviderPaused) as paused:
        await make_compressor(base_url=url).compress(make_batch(), strict=False)
    assert (paused.value.reason, paused.value.calls, paused.value.until_settings_change) == ("unreachable", 0, False)


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("api_key", "", "auth"),
        ("api_key", "with space\n", "auth"),
        ("api_key", "schlüssel", "auth"),
        ("base_url", "localhost:8080", "settings"),
        ("base_url", "http://", "settings"),
        ("base_url", "http://127.0.0.1:port", "settings"),
        ("base_url", "http://999.1.1.1", "settings"),
        ("base_url", "http://half\ud800", "settings"),
        ("model", "", "settings"),
        ("model", "half\ud800", "settings"),
    ],
)
async def test_an_unusable_setting_pauses_until_it_is_changed_without_any_request(
    make_compressor: Callable[..., AnthropicCompressor], api: MessagesApi, setting: str, value: str, reason: str
) -> None:
    with pytest.raises(ProviderPaused) as paused:
        await make_compressor(**{setting: value}).compress(make_batch(), strict=False)
    assert (paused.value.reason, paused.value.until_settings_change, api.requests) == (reason, True, [])
    assert "GAPLESS_" in str(paused.value)


async def test_two_batches_at_once_share_one_client(api: MessagesApi, compressor: AnthropicCompressor) -> None:
    async with asyncio.TaskGroup() as tasks:
        both = [tasks.create_task(compressor.compress(make_batch(), strict=False)) for _ in range(2)]
    assert all(task.result().observations for task in both)


async def test_the_default_answer_of_the_fake_makes_an_observation_and_a_summary(
    compressor: AnthropicCompressor,
) -> None:
    batch = make_batch(make_message(1), make_message(2), make_stop(3), prompts=(make_prompt(),))
    compressed = await compressor.compress(batch, strict=False)

    assert [o.message_ids for o in compressed.observations] == [(1, 2, 3)]
    assert compressed.summary
    assert compressed.summary.request == "make the tests pass"


async def test_several_tool_calls_in_one_answer_are_all_read(api: MessagesApi, compressor: AnthropicCompressor) -> None:
    second = tool_use({"observations": [FOUND | {"title": "Another"}]})
    api.script(Scripted(body=message(text("Two things:"), tool_use({"observations": [FOUND]}), second)))
    compressed = await compressor.compress(make_batch(), strict=False)
    assert [o.title for o in compressed.observations] == ["Retry loop ends", "Another"]


def test_importing_the_compressor_does_not_load_the_sdk() -> None:
    program = "import sys, workers.compressors.anthropic; print('anthropic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.slow
def test_the_fake_runs_as_a_program_and_prints_its_address() -> None:
    command = [sys.executable, "-m", "tests.fakes.messages_api", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.terminate()
