"""A newcomer finds the tests of each rule by the table in README.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TABLE = re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|$", (HERE / "README.md").read_text(), re.M)


def test_every_rule_has_its_row_and_every_file_its_rule() -> None:
    assert [int(number) for number, _ in TABLE] == list(range(1, 23))
    files = {file.name for file in HERE.glob("test_rule_*.py")}
    assert files == {
        file.name
        for _, told in TABLE
        for name in _names(told)
        for file in HERE.glob(name)
        if name.startswith("test_rule_")
    }


@pytest.mark.parametrize(("number", "told"), TABLE)
def test_what_a_row_names_is_there(number: str, told: str) -> None:
    if told.startswith("not there yet"):
        return
    assert _names(told)
    for name in _names(told):
        found = list(HERE.glob(name)) if name.startswith("test_rule_") else [HERE / name]
        assert found, name
        assert all(file.is_file() for file in found), name
    by_file = [name for name in _names(told) if name == f"test_rule_{int(number):02}_*"]
    assert by_file or f"def test_rule_{number}_" in "".join((HERE / name).read_text() for name in _names(told))


def _names(told: str) -> list[str]:
    return re.findall(r"`([^`]+)`", told)
