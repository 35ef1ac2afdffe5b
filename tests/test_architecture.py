"""The house rules that a machine can check."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("hooks", "migrations", "service", "workers")
LINES_MAX = 400


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", sources(*PACKAGES, "tests", "benchmarks"), ids=named)
def test_a_file_has_one_job(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < LINES_MAX


@pytest.mark.parametrize("path", sources(*PACKAGES), ids=named)
def test_a_module_says_in_its_first_line_what_it_owns(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)


@pytest.mark.parametrize("path", sources("hooks"), ids=named)
def test_hooks_import_only_the_standard_library_and_each_other(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed = {"hooks", *sys.stdlib_module_names}
    assert set(imported(tree)) <= allowed


def imported(tree: ast.Module) -> Iterator[str]:
    """The packages that a module imports, also within functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports have no package in an isolated script"
            yield (node.module or "").partition(".")[0]


def test_every_module_of_the_service_has_a_layer() -> None:
    layers = set(re.findall(r"service\.(\w+)", (ROOT / ".importlinter").read_text(encoding="utf-8")))
    modules = {
        path.stem for path in (ROOT / "service").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert modules - {"__init__"} == layers


def test_imports_go_one_way() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
