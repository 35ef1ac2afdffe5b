"""The files of events that wait, and of those that nobody will take."""

import stat
from pathlib import Path

import pytest

from hooks import envelope, spool
from hooks.envelope import Envelope
from tests.hooks.hook_process import event, run_hook


def make(number: int, body: bytes = b"{}") -> Envelope:
    return Envelope(envelope.stamp(client="claude-code", captured_ms=number), body)


def test_spooled_events_come_back_in_the_order_of_capture(home: Path) -> None:
    for number in (1_900_000_000_000, 5, 1_800_000_000_000):
        spool.write(str(home), make(number))
    found = [int(spool.read(path).headers[envelope.CAPTURED_AT]) for path in spool.pending(str(home))]
    assert found == [5, 1_800_000_000_000, 1_900_000_000_000]


@pytest.mark.parametrize("body", [b"", b"{}", b"\n\n", b"a: b\n\nc", b"\xff\x00\r\n"])
def test_an_event_survives_its_file(home: Path, body: bytes) -> None:
    written = make(7, body)
    read = spool.read(spool.write(str(home), written))
    assert (read.headers, read.body) == (written.headers, body)


def test_the_hooks_files_are_for_their_owner_only(home: Path) -> None:
    run_hook(home, event())
    run_hook(home, b"")
    for path in [home, *home.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_hooks_spool_file_says_what_the_request_would_have_said(home: Path, tmp_path: Path) -> None:
    run_hook(home, event(cwd=str(tmp_path)), args=("--client", "codex"), env={"GAPLESS_PROJECT": "mine"})
    [path] = spool.pending(str(home))
    spooled = spool.read(path)
    assert spooled.body == event(cwd=str(tmp_path))
    captured_ms, delivery = int(spooled.headers[envelope.CAPTURED_AT]), spooled.headers[envelope.DELIVERY]
    assert Path(path).name == f"{captured_ms:015d}-{delivery}.event"
    assert spooled.headers[envelope.CLIENT] == "codex"
    assert spooled.headers[envelope.PROJECT_KEY] == str(tmp_path)
    assert spooled.headers[envelope.PROJECT_OVERRIDE] == "mine"


def test_half_written_files_are_not_events(home: Path) -> None:
    path = Path(spool.write(str(home), make(1)))
    path.rename(path.with_name(f".{path.name}.tmp"))
    assert spool.pending(str(home)) == []


def test_an_empty_or_missing_spool_has_nothing_pending(home: Path) -> None:
    assert spool.pending(str(home)) == []
    assert spool.rejected(str(home)) == []


@pytest.mark.parametrize("data", [b"", b"{}", b"X-Gapless-Client: c\n", b"no colon\n\n{}", b"\xff: \n\n{}"])
def test_a_file_that_is_no_event_is_an_error_and_can_be_set_aside(home: Path, data: bytes) -> None:
    path = Path(spool.write(str(home), make(1)))
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"no spooled event|ascii"):
        spool.read(str(path))
    spool.set_aside(str(home), str(path), reason="unreadable")
    assert spool.pending(str(home)) == []
    [kept] = spool.rejected(str(home))
    assert Path(kept).read_bytes().endswith(data)


def test_an_event_set_aside_says_why(home: Path) -> None:
    path = spool.write(str(home), make(1, b"[]"))
    spool.set_aside(str(home), path, reason="422 no session")
    [kept] = spool.rejected(str(home))
    assert spool.read(kept).headers[envelope.REJECTED] == "422%20no%20session"
    assert spool.read(kept).body == b"[]"


def test_a_spooled_event_is_removed_once(home: Path) -> None:
    path = spool.write(str(home), make(1))
    spool.remove(path)
    spool.remove(path)
    assert spool.pending(str(home)) == []


def test_the_oldest_rejected_make_room_by_number(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "REJECTED_FILES_MAX", 3)
    for number in range(5):
        spool.write_rejected(str(home), make(number), reason="400")
    assert [int(Path(path).name[:15]) for path in spool.rejected(str(home))] == [2, 3, 4]


def test_the_oldest_rejected_make_room_by_size(home: Path) -> None:
    for number in range(3):
        spool.write_rejected(str(home), make(number, b"x" * 9_000_000), reason="400")
    assert [int(Path(path).name[:15]) for path in spool.rejected(str(home))] == [1, 2]


def test_a_failed_write_leaves_no_draft(home: Path) -> None:
    run = run_hook(home, event(), full_disk=True)
    assert "event lost" in run.stderr
    assert list((home / "spool").iterdir()) == []
