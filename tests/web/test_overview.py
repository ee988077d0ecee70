"""The overview: charts whose points open their sends, what a rise means, deploys and incidents, light to load."""

from __future__ import annotations

import csv
import gzip
import io
import re
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.web import TOP
from tests.factories import NOON, Factory
from tests.web.conftest import House

MINUTE = timedelta(minutes=1)
LIGHT = 600_000
"""Bytes, compressed, of all that the page loads."""


def minutes_ago(ago: int) -> int:
    """So many minutes before this one, counted from noon as the factory does."""
    return (datetime.now(UTC) - NOON) // MINUTE - ago


def busy(make: Factory) -> None:
    """Three quiet hours, and twenty minutes in which a second webhook asks for everything again."""
    make.stream("welcome")
    workspace = make.workspace
    this = minutes_ago(0)  # however long the rows take
    for ago in range(200):
        later = 6 if 10 <= ago < 30 else int(ago % 9 == 0)
        minute = NOON + MINUTE * (this - ago)
        make.rollup(
            this - ago,
            recorded=10 + ago % 3,
            duplicate=later,
            due=10 + ago % 3,
            due_accepted=9,
            stale_claims=int(ago == 15),
        )
        make.rollup(
            this - ago, account_id=make.account, source="outbox", claims=11, attempts=11, attempts_accepted=9,
            attempts_rejected=int(ago % 5 == 0), attempts_ambiguous=int(10 <= ago < 14), doubted=int(10 <= ago < 14),
            delivered=8, bounced=int(ago % 7 == 0), complained=int(ago % 40 == 0),
        )  # fmt: skip
        make.rollup(this - ago, mailstream="", outbox_age_seconds=1 + ago % 4, unknown=4 if ago < 14 else 0)
        for measure, step in (("outbox", 5), ("acceptance", 7), ("attempt", 6), ("delivery", 9)):
            make.add(
                "latencies", workspace_id=workspace, mailstream="receipts", minute=minute, account_id=make.account,
                measure=measure, step=step + (ago % 10 == 0), number=9,
            )  # fmt: skip
        for endpoint, number in (("/hooks/payments", 1), ("/hooks/payments-2", later - 1)):
            make.add(
                "carriers", workspace_id=workspace, mailstream="receipts", minute=minute, source="outbox",
                trigger_type="order.paid", endpoint=endpoint if later > 1 else "/hooks/payments", version=endpoint[-1:],
                recorded=0 if endpoint.endswith("2") else 10, duplicate=max(number if later > 1 else 0, 0),
                in_progress=0, mismatch=0,
            )  # fmt: skip
    for hour in range(1, 24):
        at = (datetime.now(UTC) - timedelta(hours=hour + 1)).replace(minute=0, second=0, microsecond=0)
        make.add(
            "rollup_hours",
            workspace_id=workspace,
            mailstream="receipts",
            minute=at,
            recorded=600,
            duplicate=6 + hour % 3,
        )


def test_the_page_says_what_a_rise_means_and_who_carries_it(house: House) -> None:
    busy(house.factory)
    house.commit()
    page = house.browser("support").get("/overview").text
    assert "Duplicate claims rose from" in page
    assert "the endpoint /hooks/payments-2 carries" in page
    assert "set up twice" in page


def test_it_is_drawn_from_roll_ups_the_outbox_and_the_work_table(house: House) -> None:
    busy(house.factory)
    house.factory.held()
    house.commit()
    browser = house.browser("support")
    read = house.read_by(
        lambda: [browser.get(f"/overview{part}?range={span}") for part in ("", "/figures") for span in ("1h", "30d")]
    )
    assert {"rollups", "rollup_hours", "latencies", "carriers", "outbox", "work"} <= read
    small = {"holds", "markers", "workers", "accounts", "mailstreams", "workspaces", "users", "roles", "sessions"}
    assert read <= small | {"rollups", "rollup_hours", "latencies", "latency_hours", "carriers", "outbox", "work"}


def test_a_point_of_a_chart_opens_the_sends_behind_it(house: House) -> None:
    make = house.factory
    again, doubted = make.accepted(key="came-again"), make.unknown(key="in-doubt", doubted=32)
    make.duplicate(again, when=30)
    make.move(again, "give_back", "claimed", "pending", "lease_over", when=30, made_by="sweep")
    make.event(again, "delivered", occurred=30)
    make.failed(key="refused", asked=20)
    house.commit()
    browser = house.browser("support")
    found = {}
    for what in (
        "delivered_again", "doubted", "claim_lapsed", "recorded", "not_accepted", "tried", "reported",
    ):  # fmt: skip
        page = browser.get(f"/sends?behind={what}&since=2026-11-30T12:00Z&until=2026-11-30T12:01Z")
        found[what] = set(re.findall(r"came-again|in-doubt|refused(?=<)", page.text))
        empty = browser.get(f"/sends?behind={what}&since=2026-11-30T13:00Z&until=2026-11-30T13:01Z")
        assert "No send fits" in empty.text
    assert found == {
        "delivered_again": {"came-again"}, "doubted": {"in-doubt"}, "claim_lapsed": {"came-again"},
        "recorded": {"came-again", "in-doubt", "refused"}, "not_accepted": {"in-doubt", "refused"},
        "tried": {"came-again", "in-doubt", "refused"}, "reported": {"came-again"},
    }  # fmt: skip
    assert doubted


def test_the_sends_behind_a_point_can_be_narrowed_to_a_mailstream_and_an_account(house: House) -> None:
    make = house.factory
    make.stream("welcome")
    make.accepted(key="a-receipt", message_id="a")
    make.accepted(key="a-welcome", mailstream="welcome", message_id="b")
    make.connection.execute(
        "update sendonce.attempts a set mailstream = s.mailstream from sendonce.sends s where s.id = a.send_id"
    )
    make.add("accounts", workspace_id=make.workspace, name="spare", provider="resend")
    house.commit()
    browser = house.browser("support")
    span = "/sends?behind=tried&since=2026-11-30T12:00Z&until=2026-11-30T12:01Z"
    assert "a-receipt" not in browser.get(f"{span}&mailstream=welcome").text
    assert "a-welcome" in browser.get(f"{span}&mailstream=welcome&account=main").text
    assert "a-welcome" not in browser.get(f"{span}&account=spare").text


@pytest.mark.parametrize(
    "query",
    [
        "behind=tried", "behind=tried&since=2026-11-30T12:00Z&until=2026-11-30T12:00Z", "behind=else",
        "behind=tried&since=2026-11-30T12:00&until=2026-11-30T12:01", "behind=tried&since=x&until=y",
        "behind=tried&since=2026-10-30T12:00Z&until=2026-11-30T12:00Z",
        "behind=tried&since=2026-11-30T12:00Z&until=2026-11-30T12:01Z&account=gone",
    ],
)  # fmt: skip
def test_a_point_that_is_none_is_refused_with_a_reason(house: House, query: str) -> None:
    assert house.browser("support").get(f"/sends?{query}").status_code == 400


def test_each_chart_is_a_csv_file_with_times_in_utc(house: House) -> None:
    busy(house.factory)
    house.commit()
    browser = house.browser("support")
    browser.client.set_cookie("zone", "Asia/Tokyo")
    answer = browser.get("/overview/duplicate_claim_rate.csv?range=1h")
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert rows[0] == ["From (UTC)", "Later deliveries", "All deliveries", "Rate in %", "Usual, in %"]
    assert len(rows) == 61
    newest = datetime.fromisoformat(rows[1][0])
    assert abs(datetime.now(UTC) - newest) < 3 * MINUTE
    assert browser.get("/overview/nothing.csv").status_code == 404


def test_charts_are_in_the_viewers_zone_or_in_utc_if_they_like(house: House) -> None:
    browser = house.browser("support")
    browser.client.set_cookie("zone", "Asia/Tokyo")
    assert "From (Asia/Tokyo)" in browser.get("/overview").text
    assert "From (UTC)" in browser.get("/overview?zone=UTC").text


def test_a_provider_narrows_what_was_done_and_not_what_was_asked_for(house: House) -> None:
    busy(house.factory)
    house.factory.add("accounts", workspace_id=house.workspace, name="spare", provider="resend")
    house.commit()
    browser = house.browser("support")
    every, main, spare = (
        browser.get("/overview/figures", query=query).json or {}
        for query in ({}, {"account": "main"}, {"account": "spare"})
    )
    for name in ("deliveries", "outcome_shares", "provider_latency"):
        assert every[name]["data"][0]["y"] == main[name]["data"][0]["y"] != spare[name]["data"][0]["y"]
    assert every["duplicate_claim_rate"]["data"][-1]["y"] == spare["duplicate_claim_rate"]["data"][-1]["y"]
    assert browser.get("/overview?account=gone").status_code == 400


def test_an_operator_marks_a_deploy_and_everybody_sees_it_in_the_charts(house: House) -> None:
    browser = house.browser("operator")
    answer = browser.post("/overview/markers?range=24h", kind="deploy", title=" shop  4.2 ", ago="5")
    assert answer.headers["Location"].endswith("/overview?range=24h")
    page = house.browser("support")
    assert "shop 4.2" in page.get("/overview").text
    figures = page.get("/overview/figures").json or {}
    assert "deploy: shop 4.2" in str(figures["stale_claims"]["layout"]["annotations"])
    assert house.rows("select action, detail ->> 'title' from sendonce.audit where action = 'add_marker'") == [
        ("add_marker", "shop 4.2")
    ]
    assert page.post("/overview/markers", kind="deploy", title="mine").status_code == 403


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"kind": "party", "title": "x"}, "kind is one of"),
        ({"kind": "deploy", "title": " "}, "title is needed"),
        ({"kind": "deploy", "title": "for ada@example.com"}, "contains an email address"),
    ],
)
def test_a_marker_that_cannot_be_taken_says_why(house: House, fields: dict[str, str], told: str) -> None:
    browser = house.browser("operator")
    browser.post("/overview/markers", **fields)
    assert told in browser.get("/overview").text
    assert house.rows("select * from sendonce.markers") == []


def test_the_page_is_light_and_does_not_wait_for_the_chart_library(house: House) -> None:
    page = house.browser("support").get("/overview").text
    loaded = re.findall(r'<(?:script|link)[^>]+(?:src|href)="/(static/[^"?]+)', page)
    assert not [name for name in loaded if "plotly" in name and name.endswith(".js")], "asked for by charts.js, later"
    library = re.search(r'data-plotly="/(static/[^"?]+)', page)
    assert library is not None
    sizes = [len(gzip.compress((TOP / name).read_bytes())) for name in (*loaded, library[1])]
    assert len(loaded) > 5
    assert sum(sizes) + len(gzip.compress(page.encode())) < LIGHT
    assert sum(sizes[:-1]) < 60_000, "what the first paint waits for"


def test_what_can_be_compressed_is_and_stays_the_same(house: House) -> None:
    path = "/static/vendor/plotly/plotly-basic.min.js"
    client = house.app.test_client()
    # Buffered: read to the end and closed, as a server does it.
    plain, packed, refused = (
        client.get(path, headers={"Accept-Encoding": takes}, buffered=True) for takes in ("", "br, gzip", "gzip;q=0")
    )
    assert packed.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed.headers["Vary"]
    assert len(packed.data) < LIGHT < len(plain.data)
    assert gzip.decompress(packed.data) == plain.data
    assert "Content-Encoding" not in refused.headers
