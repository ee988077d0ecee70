"""A test that needs a program of the system is left out with a word, or fails where nothing may be left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]


def run_one_that_needs_chromium(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a pytest of its own, on a machine without any program."""
    (folder / "test_it.py").write_text("def test_it(requires_program):\n    requires_program('chromium')\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        os.devnull,
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.conftest",
        str(folder / "test_it.py"),
    ]
    return subprocess.run(
        command,
        cwd=CHECKOUT,
        env=os.environ | {"PATH": str(folder), "SENDONCE_TEST_ALL": ""} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_was_left_out_is_named_with_how_to_get_it(tmp_path: Path) -> None:
    done = run_one_that_needs_chromium(tmp_path)
    assert done.returncode == 0
    assert "Left out 1 test: the system has no chromium; get it with: apt-get install chromium" in done.stdout


def test_left_out_is_failed_where_all_is_asked_for(tmp_path: Path) -> None:
    done = run_one_that_needs_chromium(tmp_path, SENDONCE_TEST_ALL="1")
    assert done.returncode == 1
    assert "the system has no chromium; get it with: apt-get install chromium" in done.stdout


def test_the_gate_is_told_the_packages_of_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    command = [sys.executable, str(CHECKOUT / "tests" / "programs.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "chromium" in done.stdout.split()
