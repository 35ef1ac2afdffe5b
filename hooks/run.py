"""What one hook process does: read the event, keep private parts back, hand it to the service or else to the spool."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal itself loads enum, which costs as much as the rest
import os
import time

from hooks import envelope, payload, project, stdin, transport
from hooks.envelope import Envelope

AVOID_S = 30  # after a hung service the next hooks spool at once for this long
EVENT_S = 0.3  # from connecting to the answer
CONTEXT_S = 1.5  # the same where the answer carries context
SECONDS_PER_BYTE = 0.1 / 1_000_000  # large payloads take longer to judge and store
CLAUDE_CODE = "claude-code"
ANSWERED_WITH_CONTEXT = ("SessionStart", "UserPromptSubmit", "PreToolUse")
NEVER_STORED = "PreToolUse"  # asked about, so nothing waits for a service that is away


def main(argv: list[str]) -> None:
    """Run one hook: the payload on stdin, at most one JSON object on stdout. Raises only on bugs of ours.

    `argv`: `--client NAME` says who sends it, `--home FOLDER` which data folder is meant, `--start-service` that the
    first hook of a session starts the service if it does not run.
    """
    captured_ms = time.time_ns() // 1_000_000
    _ignore_terminal_signals()
    raw, whole = stdin.read(0)
    client = _option(argv, "--client") or CLAUDE_CODE
    if client != CLAUDE_CODE:
        from hooks import clients

        raw = clients.in_our_words(client, raw)
    headers = envelope.stamp(client=client, captured_ms=captured_ms)
    if not _add_project(headers, raw):
        return
    body, private = payload.without_private(raw)
    if private:
        headers[envelope.PRIVATE] = "1"
    body, fits = payload.fit(body)
    home = data_folder(_option(argv, "--home"))
    if not home:
        _complain("event lost: no home folder is known; set HOME or GAPLESS_HOME")
    elif not raw.strip():
        _set_aside(home, Envelope(headers, body), reason="empty")
    elif not (whole and fits):
        _set_aside(home, Envelope(headers, body), reason="too large or cut off")
    else:
        _deliver(home, Envelope(headers, body), client=client, may_start="--start-service" in argv)


def data_folder(named: str = "") -> str:
    """The data folder, absolute; empty where there is no home folder to put it in."""
    home = os.path.expanduser(named or os.environ.get("GAPLESS_HOME") or os.path.join("~", ".gapless"))
    if home.startswith("~"):  # unknown; it would become a folder of that name inside the user's repository
        return ""
    return os.path.abspath(home)


def _deliver(home: str, event: Envelope, *, client: str, may_start: bool) -> None:
    name = payload.text_at(event.body, "hook_event_name")
    if name == "UserPromptSubmit":
        _note_prompt(home, event)
    try:
        status, answer = _send(home, event, wants_context=name in ANSWERED_WITH_CONTEXT)
    except transport.Away as away:
        if name != NEVER_STORED:
            _spool(home, event)
        if may_start and name == "SessionStart" and not isinstance(away, transport.Stuck):
            _start_service(home, client)
        return
    if status in transport.REFUSALS:
        _set_aside(home, event, reason=str(status))
    elif b'"hookSpecificOutput"' in answer:
        from hooks import answers

        answers.print_context(client, answer)


def _send(home: str, event: Envelope, *, wants_context: bool) -> tuple[int, bytes]:
    """Status (2xx or a refusal) and body of the service's answer. Raises `transport.Away` when it took nothing."""
    marker = os.path.join(home, "run", "avoid")
    if _is_fresh(marker):
        raise transport.Stuck("the service was stuck a moment ago")
    within_s = (CONTEXT_S if wants_context else EVENT_S) + len(event.body) * SECONDS_PER_BYTE
    try:
        return transport.post(home, event, within_s=within_s)
    except transport.Stuck:
        _touch(marker)
        raise


def _start_service(home: str, client: str) -> None:
    from hooks import answers, starting

    try:
        if not starting.start_service(home):
            answers.print_notice(client, starting.how_to_install(home))
    except OSError as error:
        _complain(f"the service could not be started: {error}. `gapless up` starts it")


def _add_project(headers: dict[str, str], raw: bytes) -> bool:
    """Add the headers that name the project. False when its folder is excluded: then nothing may leave this process."""
    cwd = payload.text_at(raw, "cwd") or _own_cwd()
    patterns = os.environ.get("GAPLESS_EXCLUDE", "").split(",")
    try:
        if project.is_excluded(cwd, patterns):
            return False
        found = project.identify(cwd)
        if found is not None:
            headers |= {
                envelope.PROJECT: envelope.quote(found.name),
                envelope.PROJECT_KEY: envelope.quote(found.key),
            }
    except ValueError:  # a NUL, half a surrogate: no folder has such a name, and the service judges the rest
        pass
    override = os.environ.get("GAPLESS_PROJECT", "").strip()
    if override:
        headers[envelope.PROJECT_OVERRIDE] = envelope.quote(override)
    return True


def _note_prompt(home: str, event: Envelope) -> None:
    from hooks import private_turns

    session_id, prompt_id = _turn(event)
    try:
        private_turns.note_prompt(home, session_id, prompt_id, private=envelope.PRIVATE in event.headers)
    except OSError:  # where nothing can be written, nothing is spooled either
        return


def _spool(home: str, event: Envelope) -> None:
    from hooks import private_turns, spool

    if envelope.PRIVATE not in event.headers and private_turns.covers(home, *_turn(event)):
        event = Envelope({**event.headers, envelope.PRIVATE: "1"}, payload.without_text(event.body))
    try:
        spool.write(home, _redacted(event))
    except OSError as error:
        _complain(f"event lost: the service is away and {os.path.join(home, 'spool')} cannot be written: {error}")


def _turn(event: Envelope) -> tuple[str, str]:
    """Ids of the session and the prompt; empty where the event has none."""
    return payload.text_at(event.body, "session_id") or "", payload.text_at(event.body, "prompt_id") or ""


def _set_aside(home: str, event: Envelope, *, reason: str) -> None:
    """Keep what the service will never take, for `gapless doctor` to show."""
    from hooks import spool

    try:
        spool.write_rejected(home, _redacted(event), reason=reason)
    except OSError as error:
        _complain(f"unusable event ({reason}) not kept: {os.path.join(home, 'spool')} cannot be written: {error}")


def _redacted(event: Envelope) -> Envelope:
    from hooks import secrets

    if not secrets.may_hold_secret(event.body):
        return event
    return Envelope(event.headers, secrets.redact_json_bytes(event.body))


def _option(argv: list[str], name: str) -> str:
    for position, argument in enumerate(argv):
        if argument == name and position + 1 < len(argv):
            return argv[position + 1]
        if argument.startswith(name + "="):
            return argument.partition("=")[2]
    return ""


def _own_cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # deleted under us
        return ""


def _is_fresh(marker: str) -> bool:
    try:
        age_s = time.time() - os.stat(marker).st_mtime
    except OSError:
        return False
    return 0 <= age_s < AVOID_S


def _touch(marker: str) -> None:
    try:
        os.makedirs(os.path.dirname(marker), mode=0o700, exist_ok=True)
        os.close(os.open(marker, os.O_CREAT | os.O_WRONLY, 0o600))
        os.utime(marker)
    except OSError:  # the marker only saves time
        return


def _ignore_terminal_signals() -> None:
    # Ctrl-C and a closed terminal reach the whole process group; the event that led there is still worth keeping.
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(_signal, name):
            _signal.signal(getattr(_signal, name), _signal.SIG_IGN)


def _complain(message: str) -> None:
    try:
        os.write(2, f"gapless: {message}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        return
