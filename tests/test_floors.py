"""The house has floors: imports go down, never up or sideways, and never in a circle (docs: how the code is laid out).

Every import counts, also one inside a function or for type checking only: what a module knows of is what it names.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "dashboard"

GROUND = {"lifecycle", "settings", "log", "identity", "steps"}
BELOW = {
    **dict.fromkeys(GROUND, GROUND),
    "ledger": GROUND,
    "providers": GROUND,
    "embedded": set(),
    "channels": GROUND | {"providers"},  # the way to people; shares the sockets of the way to providers
    "simulator": GROUND,  # stands apart: it knows the vendors' documents, and no adapter
    "migrations": GROUND | {"ledger"},
    "insight": GROUND | {"ledger", "providers"},
    "outcomes": GROUND | {"ledger", "providers"},  # the bridge between the two
    "producer": GROUND | {"ledger", "providers", "outcomes"},
    "worker": GROUND | {"ledger", "providers", "outcomes", "insight", "channels"},
    "web": GROUND | {"ledger", "providers", "outcomes", "insight", "migrations", "producer"},
}
BELOW["demo"] = set(BELOW)  # plays everything there is
BELOW["cli"] = set(BELOW)
"""What each part of the house may import, besides itself."""


def modules() -> dict[str, Path]:
    """Every module of ours by its dotted name, packages under theirs."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        steps = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(steps[:-1] if steps[-1] == "__init__" else steps)] = path
    return found


MODULES = modules()


def imported_by(name: str) -> Iterator[str]:
    """The modules of ours that the module names in imports."""
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import; write the whole name"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (module for module in inner if module in MODULES)
            if node.module in MODULES and not all(module in MODULES for module in inner):
                yield node.module


def part_of(module: str) -> str | None:
    """``ledger`` for ``dashboard.ledger.moves``; None for the package itself, which holds the version only."""
    return module.split(".")[1] if "." in module else None


@pytest.mark.parametrize("part", sorted({part for part in map(part_of, MODULES) if part}))
def test_a_part_imports_only_what_lies_below_it(part: str) -> None:
    assert part in BELOW, f"dashboard/{part} is new: give it a floor in BELOW"
    wrong = [
        f"{module} imports {other}"
        for module in MODULES
        if part_of(module) == part
        for other in imported_by(module)
        if part_of(other) not in {None, part} | BELOW[part]
    ]
    assert wrong == []


def test_no_imports_go_in_a_circle() -> None:
    try:
        TopologicalSorter({name: set(imported_by(name)) for name in MODULES}).prepare()
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        pytest.fail(f"a circle of imports: {circle}", pytrace=False)


def test_the_directions_themselves_have_no_circle() -> None:
    TopologicalSorter({part: below - GROUND for part, below in BELOW.items() if part not in GROUND}).prepare()


@pytest.mark.parametrize("name", ["dashboard.worker", "dashboard.producer"])
def test_the_worker_and_the_producer_load_neither_flask_nor_plotly(name: str) -> None:
    ours = [module for module in MODULES if f"{module}.".startswith(f"{name}.") and not module.endswith("__main__")]
    assert name in ours
    code = f"import sys, {', '.join(ours)}; print(*sorted({{'flask', 'plotly', 'dashboard.web'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


LATE = {
    "dashboard.worker.process": {"alembic", "mako", "click", "argon2"},
    "dashboard.web": {"alembic", "mako"},
    "dashboard.cli": {"psycopg", "sqlalchemy", "flask", "alembic", "structlog"},
}
"""What each must not load before it needs it: its start is waited for."""


@pytest.mark.parametrize("name", LATE)
def test_a_start_loads_nothing_that_only_another_part_needs(name: str) -> None:
    code = f"import sys, {name}; print(*sorted({LATE[name]!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_no_password_is_hashed_by_an_import() -> None:
    code = (
        "import argon2; argon2.PasswordHasher.hash = None\nimport dashboard.web.views.login, dashboard.worker.process"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
