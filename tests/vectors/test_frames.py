"""Frames on the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.vectors import frames


@given(
    st.lists(st.tuples(st.dictionaries(st.text(), st.integers(0, 2**31) | st.text()), st.binary(max_size=5000))),
    st.integers(1, 700),
)
def test_frames_come_whole_however_they_are_cut(sent: list[tuple[dict[str, object], bytes]], step: int) -> None:
    stream = b"".join(frames.pack(header, blob) for header, blob in sent)
    unpacker = frames.Unpacker()
    pieces = (stream[start : start + step] for start in range(0, len(stream), step))
    assert [frame for piece in pieces for frame in unpacker.feed(piece)] == sent


@pytest.mark.parametrize("noise", [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\2\0\0\0\0{]", b"\xff" * 8])
def test_what_is_no_frame_is_refused(noise: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of orjson or ours
        list(frames.Unpacker().feed(noise))
