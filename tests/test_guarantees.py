"""What docs/guarantees.md promises is proved: each of its lines names tests, and each of these exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
PAGE = (CHECKOUT / "docs" / "guarantees.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def promises(page: str) -> list[str]:
    """The items of all lists, but for the table of contents."""
    return re.findall(r"^(?:-|\d+\.) (?!\[[^\]]*\]\(#).*$", page, re.MULTILINE)


def unproved(page: str) -> list[str]:
    """The promises without a test."""
    return [promise for promise in promises(page) if not NAMED.search(promise)]


def defined_in(file: str) -> set[str]:
    """The names of the tests in a file."""
    tree = ast.parse((CHECKOUT / file).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_no_promise_stands_without_a_test() -> None:
    assert len(promises(PAGE)) > 50
    assert unproved(PAGE) == []
    assert unproved(PAGE + "\n- Mail is always read.\n") == ["- Mail is always read."], "and a wish would be noticed"


@pytest.mark.parametrize("file", sorted({file for file, _ in NAMED.findall(PAGE)}))
def test_every_test_that_is_named_exists(file: str) -> None:
    named = {test for where, test in NAMED.findall(PAGE) if where == file}
    assert named - defined_in(file) == set()


def test_nothing_that_looks_like_a_test_is_named_in_another_way() -> None:
    assert PAGE.count("::test_") - PAGE.count("tests/…::test_…") == len(NAMED.findall(PAGE))
