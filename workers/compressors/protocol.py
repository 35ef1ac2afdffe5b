"""What every compressor is."""

from typing import Protocol

from service.models import Batch, Compressed


class Compressor(Protocol):
    """A pure function of its batch: no conversation, nothing carried from one call to the next.

    Raises `service.errors.ProviderError` and nothing else.
    """

    name: str

    async def compress(self, batch: Batch, *, strict: bool) -> Compressed:
        """`strict` asks for a second, narrower attempt after a bad answer."""
        ...

    async def close(self) -> None: ...
