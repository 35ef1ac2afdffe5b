"""The hook runs alone: neither the user's folder nor a poor environment reaches it."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hooks import spool
from hooks.command import hook_command
from tests.hooks.hook_process import HOOK, PYTHON, ROOT, accept, event, run_hook, unix_service

OTHER_PYTHONS = sorted(Path(PYTHON).parents[2].glob("3.*/bin/python3"))


def test_modules_in_the_users_folder_are_never_imported(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "hostile"
    for package in ("hooks", "service", "os", "json"):
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").write_text("import os\nos.write(2, b'imported')\nos._exit(3)")
    (folder / "json.py").write_text("raise SystemExit(3)")
    (folder / "sitecustomize.py").write_text("raise SystemExit(3)")
    payload = event(cwd=str(folder), a="<private>so that json is loaded</private>")
    run = run_hook(home, payload, cwd=folder, env={"PYTHONPATH": str(folder), "PYTHONSTARTUP": str(folder / "json.py")})
    assert (run.code, run.stdout, run.stderr) == (0, b"", "")
    assert len(spool.pending(str(home))) == 1


def test_nothing_is_written_into_the_users_folder(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    run_hook(home, event(cwd=str(folder)), cwd=folder)
    assert list(folder.iterdir()) == []


def test_without_a_home_variable_the_account_has_one(home: Path, tmp_path: Path) -> None:
    """The data folder would be the real one, so the event is one of an excluded folder."""
    (tmp_path / ".gapless-off").touch()
    command = [PYTHON, "-I", "-S", str(HOOK)]
    run = subprocess.run(command, input=event(cwd=str(tmp_path)), env={}, capture_output=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


def test_closed_standard_streams_cost_no_event(home: Path) -> None:
    output = b'{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"c"}}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(output), output)
    command = ["/bin/sh", "-c", '"$@" >&- 2>&-', "sh", PYTHON, "-I", "-S", str(HOOK)]
    with unix_service(home, lambda _: answer) as service:
        run = subprocess.run(command, input=event(), env={"GAPLESS_HOME": str(home)}, check=False)
    assert run.returncode == 0
    assert len(service.requests) == 1


def test_a_host_that_stopped_listening_costs_no_event(home: Path) -> None:
    output = b'{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"c"}}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(output), output)
    reading, writing = os.pipe()
    os.close(reading)
    with unix_service(home, lambda _: answer) as service:
        run = subprocess.run(
            [PYTHON, "-I", "-S", str(HOOK)],
            input=event(),
            env={"GAPLESS_HOME": str(home)},
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    os.close(writing)
    assert (run.returncode, run.stderr) == (0, b"")
    assert len(service.requests) == 1


def test_a_closed_stdin_is_an_empty_one(home: Path) -> None:
    command = ["/bin/sh", "-c", '"$@" <&-', "sh", PYTHON, "-I", "-S", str(HOOK)]
    run = subprocess.run(command, env={"GAPLESS_HOME": str(home)}, capture_output=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
    assert len(spool.rejected(str(home))) == 1


def test_a_broken_installation_still_exits_0(tmp_path: Path) -> None:
    alone = tmp_path / "hooks" / HOOK.name
    alone.parent.mkdir()
    alone.write_bytes(HOOK.read_bytes())
    run = subprocess.run([PYTHON, "-I", "-S", str(alone)], input=event(), capture_output=True, check=False)
    assert (run.returncode, run.stdout) == (0, b"")
    assert run.stderr.startswith(b"gapless: event lost")


def test_a_broken_installation_with_nobody_to_tell_exits_0_too(tmp_path: Path) -> None:
    alone = tmp_path / "hooks" / HOOK.name
    alone.parent.mkdir()
    alone.write_bytes(HOOK.read_bytes())
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run([PYTHON, "-I", "-S", str(alone)], input=event(), stderr=writing, check=False)
    os.close(writing)
    assert run.returncode == 0


@pytest.mark.parametrize("python", [path for path in OTHER_PYTHONS if int(path.parts[-3].split(".")[1]) >= 9], ids=str)
def test_every_python_from_3_9_on_will_do(home: Path, python: Path) -> None:
    payloads = (event(a="<private>b</private>"), event(a="<private>b</private>")[:-9])
    with unix_service(home, accept):
        up = [run_hook(home, payload, python=str(python)) for payload in payloads]
    down = [run_hook(home, payload, python=str(python)) for payload in payloads]
    assert {(run.code, run.stdout, run.stderr) for run in up + down} == {(0, b"", "")}


def test_the_hook_command_is_one_line_that_a_shell_runs_anywhere(home: Path, tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", hook_command("claude code's")]
    subprocess.run(command, input=event(), env={"GAPLESS_HOME": str(home)}, cwd=tmp_path, check=True)
    [path] = spool.pending(str(home))
    assert spool.read(path).headers["X-Gapless-Client"] == "claude%20code%27s"


def test_the_hook_command_names_a_real_interpreter_isolated() -> None:
    python, *arguments = shlex.split(hook_command("codex"))
    assert not Path(python).is_symlink()
    assert Path(python).samefile(sys.executable)
    assert arguments == ["-I", "-S", str(ROOT / "hooks" / "gapless_hook.py"), "--client", "codex"]
