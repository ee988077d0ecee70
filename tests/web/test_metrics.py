"""``/metrics``: who may ask, what it says, that processes add up, and that nothing on it is anybody's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from dashboard.web import meters as web_meters
from dashboard.web.state import NAME, Ground
from dashboard.worker import meters as worker_meters
from tests.factories import ADDRESS
from tests.web.conftest import House

TOKEN = "a-token-of-the-scraper"
FILES = Path(__file__).resolve().parents[2] / "docs" / "monitoring"


@pytest.fixture
def scraped(house: House) -> House:
    """A house whose figures may be asked for."""
    ground: Ground = house.app.extensions[NAME]
    house.app.extensions[NAME] = replace(ground, settings=replace(ground.settings, metrics_token=TOKEN))
    return house


def scrape(house: House) -> str:
    answer = house.app.test_client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert answer.content_type.startswith("text/plain; version=0.0.4")
    return answer.text


def values(text: str, name: str) -> dict[tuple[str, ...], float]:
    """The samples of a metric by the values of their labels, which stand in the order of their names."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {tuple(sample.labels.values()): sample.value for sample in samples if sample.name == name}


def test_whoever_asks_has_to_bring_the_token(scraped: House) -> None:
    client = scraped.app.test_client()
    for headers in ({}, {"Authorization": "Bearer another-token-entirely"}, {"Authorization": f"Basic {TOKEN}"}):
        assert client.get("/metrics", headers=headers).status_code == 401


def test_without_a_token_nobody_may_ask(house: House) -> None:
    assert house.app.test_client().get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404


def test_it_says_how_each_workspace_stands(scraped: House) -> None:
    for _ in range(2):
        scraped.factory.held()
    scraped.factory.unknown()
    scraped.factory.pending()
    scraped.factory.claimed()
    scraped.commit()
    text, workspace = scrape(scraped), f"ws-{scraped.workspace}"
    assert values(text, "sendonce_open_sends") == {
        ("receipts", "held", workspace): 2, ("receipts", "unknown", workspace): 1,
        ("receipts", "pending", workspace): 1, ("receipts", "claimed", workspace): 1,
    }  # fmt: skip
    for state in ("due", "unknown", "held"):
        assert values(text, f"sendonce_oldest_{state}_send_age_seconds")[workspace,] > 0, state
    assert values(text, "sendonce_stale_claims")[workspace,] == 1
    assert values(text, "sendonce_sending_enabled") == {(): 1}
    assert values(text, "sendonce_account_paused") == {("main", "resend", workspace): 0}


def test_it_reads_no_hot_table(scraped: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither sends nor attempts nor events, whatever their size."""
    scraped.factory.held()
    scraped.commit()
    assert scraped.read_by(lambda: scrape(scraped)) == {
        "outbox", "work", "holds", "rollups", "mailstreams", "accounts", "workspaces", "workers", "settings", "alerts",
        "dead_letters",
    }  # fmt: skip


def test_nothing_about_a_person_or_a_send_is_on_it(scraped: House) -> None:
    send = scraped.factory.held(recipient="recipient_planted", key="planted:key")
    scraped.commit()
    browser = scraped.browser("operator")
    browser.get(f"/held/{send}")
    browser.post("/search", q=ADDRESS)
    text = scrape(scraped)
    for planted in ("recipient_planted", "planted:key", str(send), ADDRESS, ADDRESS.partition("@")[0] + "@", TOKEN):
        assert planted not in text


def test_names_follow_the_conventions(scraped: House) -> None:
    families = [f for f in text_string_to_metric_families(scrape(scraped)) if f.name.startswith("sendonce_")]
    assert len(families) > 20
    for family in families:
        assert re.fullmatch(r"sendonce_[a-z_]+", family.name)
        assert family.documentation.endswith(".")
        if "age" in family.name.split("_") or "duration" in family.name:
            assert family.name.endswith("_seconds")
        if family.type == "counter":
            assert all(sample.name.endswith(("_total", "_created")) for sample in family.samples)


@pytest.fixture
def known(scraped: House) -> set[str]:
    """Every name of a sample that there can be."""
    names = {sample.name for f in text_string_to_metric_families(scrape(scraped)) for sample in f.samples}
    names |= {family.name for family in text_string_to_metric_families(scrape(scraped))}
    for meter in (*web_meters.METERS, *worker_meters.METERS):
        for family in meter.collect():
            suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}.get(family.type, [""])
            names |= {family.name + suffix for suffix in suffixes}
    return names


def used_in(expression: str) -> set[str]:
    return set(re.findall(r"\bsendonce_\w+", expression))


def test_the_alert_rules_load_and_every_metric_in_them_exists(known: set[str]) -> None:
    (group,) = rules()["groups"]
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"])
    for rule in group["rules"]:
        assert used_in(rule["expr"]), rule["alert"]
        assert used_in(rule["expr"]) <= known, rule["alert"]
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert {"summary", "description"} <= set(rule["annotations"])
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))


def test_the_grafana_dashboard_loads_and_every_metric_in_it_exists(known: set[str]) -> None:
    board = json.loads((FILES / "grafana-dashboard.json").read_text())
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for target in panel["targets"]:
            assert used_in(target["expr"]), panel["title"]
            assert used_in(target["expr"]) <= known, panel["title"]
    assert used_in(board["templating"]["list"][1]["definition"]) <= known


def rules() -> Any:
    return yaml.safe_load((FILES / "prometheus-rules.yml").read_text())


PROCESS = """
import sys
from dashboard.web import meters
meters.ASKED.labels("won").inc(int(sys.argv[1]))
"""


def test_several_processes_add_up(scraped: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in ("2", "3"):
        environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
        subprocess.run([sys.executable, "-c", PROCESS, number], env=environment, check=True)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    assert values(scrape(scraped), "sendonce_web_asked_sends_total") == {("won",): 5}
    assert values(scrape(scraped), "sendonce_sending_enabled") == {(): 1}
