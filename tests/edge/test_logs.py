import json
import logging
from pathlib import Path

import structlog

from service import logs
from tests.edge.edge_service import mode_of


def _lines(home: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (home / "logs" / "gapless.log").read_text().splitlines()]


def test_an_event_is_one_json_line_with_its_values_as_keys(tmp_path: Path) -> None:
    with logs.logging_to(tmp_path):
        structlog.get_logger().info("batch.completed", messages=3)
    (line,) = _lines(tmp_path)
    assert (line["event"], line["messages"], line["level"]) == ("batch.completed", 3, "info")
    assert str(line["timestamp"]).endswith("Z")


def test_a_failure_is_logged_with_its_place_and_without_the_values_of_variables(tmp_path: Path) -> None:
    secret = "the user's words"
    with logs.logging_to(tmp_path):
        try:
            len(secret) / 0
        except ZeroDivisionError:
            structlog.get_logger().exception("request.failed")
    text = (tmp_path / "logs" / "gapless.log").read_text()
    assert "test_logs.py" in text
    assert secret not in text


def test_warnings_of_libraries_come_the_same_way(tmp_path: Path) -> None:
    with logs.logging_to(tmp_path):
        logging.getLogger("uvicorn.error").warning("odd %s", "request")
        logging.getLogger("uvicorn.error").info("chatter")
    assert [line["event"] for line in _lines(tmp_path)] == ["odd request"]


def test_the_file_is_bounded_and_private(tmp_path: Path) -> None:
    with logs.logging_to(tmp_path):
        log = structlog.get_logger()
        for _ in range(logs.FILE_BYTES // 1_000_000 + 2):
            log.info("long.line", text="x" * 1_000_000)
    files = list((tmp_path / "logs").iterdir())
    assert len(files) > 1
    assert {mode_of(path) for path in files} == {0o600}
    assert all(path.stat().st_size <= logs.FILE_BYTES for path in files)


def test_nothing_is_left_behind_after_the_block(tmp_path: Path) -> None:
    before = list(logging.getLogger().handlers)
    with logs.logging_to(tmp_path):
        pass
    assert logging.getLogger().handlers == before
