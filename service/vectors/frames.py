"""Frames between the vector process and those who ask it: two lengths, a JSON header, raw bytes (vectors)."""

import struct
from collections.abc import Iterator
from typing import Any

import orjson

Frame = tuple[dict[str, Any], bytes]
LENGTHS = struct.Struct("!II")
FRAME_BYTES_MAX = 256 * 1024 * 1024
"""A length beyond it is no frame of ours."""


def pack(header: dict[str, Any], blob: bytes = b"") -> bytes:
    encoded = orjson.dumps(header)
    return LENGTHS.pack(len(encoded), len(blob)) + encoded + blob


class Unpacker:
    """Takes bytes as they come, gives whole frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Raises `ValueError` when the other side does not speak in frames."""
        self._buffer += data
        while len(self._buffer) >= LENGTHS.size:
            header_bytes, blob_bytes = LENGTHS.unpack_from(self._buffer)
            end = LENGTHS.size + header_bytes + blob_bytes
            if end > FRAME_BYTES_MAX:
                raise ValueError("not a frame")
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[LENGTHS.size : end])
            del self._buffer[:end]
            yield orjson.loads(body[:header_bytes]), body[header_bytes:]
