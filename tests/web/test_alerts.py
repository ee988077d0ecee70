"""The page of alerts: what fires, rules, channels and silences, and who may change them."""

from __future__ import annotations

from tests.web.conftest import House

RULE = {
    "name": "held-sends", "measure": "held", "above": "2", "clears_at": "1", "hold_for": "0", "severity": "critical",
    "enabled": "yes",
}  # fmt: skip


def test_the_page_says_so_when_nothing_is_watched_and_nobody_told(house: House) -> None:
    page = house.browser("operator").get("/alerts").text
    for said in ("Nothing fires.", "Nothing is watched.", "Nobody is told yet.", "Nothing has fired yet."):
        assert said in page


def test_rule_silence_and_channel_are_made_shown_and_audited(house: House) -> None:
    operator, admin = house.browser("operator"), house.browser("admin")
    operator.get("/alerts/rule")
    assert operator.post("/alerts/rule", **RULE).status_code == 303
    assert "Held sends above 2" in operator.get("/alerts").text
    assert 'value="held-sends"' in operator.get("/alerts/rule", query={"name": "held-sends"}).text
    assert operator.post("/alerts/silences", rule="held-sends", lasts="1h", reason="a migration").status_code == 303
    assert "a migration" in operator.get("/alerts").text
    admin.get("/alerts/channel")
    made = admin.post(
        "/alerts/channel", name="chat", kind="webhook", url="https://example.com/planted", least="warning"
    )
    assert "whsec_" in made.text, "its secret is shown once"
    page = admin.get("/alerts").text
    assert "https://example.com/…" in page
    assert "whsec_" not in page
    assert "planted" not in page
    assert admin.post("/alerts/channel/test", name="chat").status_code == 303
    actions = {row[0] for row in house.rows("select action from sendonce.audit")}
    assert actions >= {"set_alert_rule", "silence_alerts", "add_alert_channel", "test_alert_channel"}
    assert house.rows("select kind::text, next_try_at is not null from sendonce.alert_notices") == [("test", True)]


def test_what_fires_stands_first_with_its_next_step(house: House) -> None:
    house.factory.add(
        "alerts", workspace_id=house.workspace, rule="outbox-stuck", measure="outbox_age", severity="critical",
        threshold=120, value=200, worst=400,
    )  # fmt: skip
    house.commit()
    page = house.browser("operator").get("/alerts").text
    assert "6 min" in page
    assert "See whether a worker runs its relay" in page


def test_what_makes_no_sense_is_told_and_what_was_typed_stays(house: House) -> None:
    browser = house.browser("operator")
    browser.get("/alerts/rule")
    answer = browser.post("/alerts/rule", **(RULE | {"clears_at": "5"}))
    assert answer.status_code == 422
    assert "must not be greater" in answer.text
    assert 'value="held-sends"' in answer.text
    assert browser.post("/alerts/silences", rule="", lasts="1h", reason=" ").status_code == 422
    assert browser.post("/alerts/rule/remove", name="nothing").status_code == 409


def test_channels_are_for_admins(house: House) -> None:
    browser = house.browser("operator")
    browser.get("/alerts")
    for path in ("/alerts/channel", "/alerts/channel/remove"):
        assert (
            browser.post(path, name="chat", kind="slack", url="https://example.com", least="warning").status_code == 403
        )
    assert house.rows("select count(*) from sendonce.alert_channels") == [(0,)]
