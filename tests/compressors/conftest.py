"""A local Messages API, and a compressor that talks to it."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.compressors.batches import API_KEY
from tests.fakes.messages_api import MessagesApi
from workers.compressors.anthropic import AnthropicCompressor


@pytest.fixture
async def api() -> AsyncIterator[MessagesApi]:
    async with MessagesApi() as server:
        yield server


@pytest.fixture
async def make_compressor(api: MessagesApi) -> AsyncIterator[Callable[..., AnthropicCompressor]]:
    made: list[AnthropicCompressor] = []

    def make(**changes: Any) -> AnthropicCompressor:
        settings: dict[str, Any] = {"api_key": API_KEY, "model": "fake", "base_url": api.url, "timeout_s": 5.0}
        made.append(AnthropicCompressor(**settings | changes))
        return made[-1]

    yield make
    for compressor in made:
        await compressor.close()


@pytest.fixture
def compressor(make_compressor: Callable[..., AnthropicCompressor]) -> AnthropicCompressor:
    return make_compressor()
