"""Every scenario is a test, or is listed with what it needs."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
ALL = {f"S{number:02}" for number in range(1, 33)}


def test_every_scenario_is_played_or_listed_with_what_it_needs() -> None:
    played = {
        found for file in HERE.glob("test_*.py") for found in re.findall(r"^def test_(S\d\d)_", file.read_text(), re.M)
    }
    listed = re.findall(r"^\| (S\d\d) \| ([^|]+) \| ([^|]+) \|$", (HERE / "README.md").read_text(), re.M)
    unplayed = {scenario for scenario, _, instead in listed if instead.startswith("nothing")}
    in_part = {scenario for scenario, _, _ in listed} - unplayed
    assert played | unplayed == ALL
    assert played & unplayed == set()
    assert in_part <= played
