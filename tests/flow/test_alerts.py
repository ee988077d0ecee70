"""Alerts on a real ledger: what fires, how often, who is told, and how often it is tried."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dashboard.ledger import alert_rules, alerts
from dashboard.ledger.access import Refused
from dashboard.ledger.alert_channels import (
    Target,
    add_channel,
    email_target,
    list_channels,
    remove_channel,
    slack_target,
    try_channel,
    webhook_target,
)
from dashboard.ledger.alert_rules import DEFAULTS, Rule
from dashboard.ledger.database import Database
from dashboard.ledger.measures import Measure
from dashboard.ledger.tables import NO_ACCOUNT, ChannelKind, Severity
from dashboard.providers.base import WebhookRequest
from dashboard.providers.standard_webhooks import verified_id
from dashboard.settings import Settings
from dashboard.simulator import Config, Simulator
from dashboard.worker.alert import look
from dashboard.worker.notify import Notifier
from tests.crew import Rival, ask, until
from tests.ear import SILENCE, Ear
from tests.ear import ear as ear
from tests.factories import own_database
from tests.place import EMPTY, KEYS, Place

NEVER = timedelta()
HELD = Rule(
    name="held-sends", measure=Measure.HELD, threshold=2, clears_at=1, hold_for=NEVER, severity=Severity.CRITICAL
)


@dataclass
class Watch:
    """The alerts of a place, step by step."""

    place: Place
    settings: Settings

    def rule(self, rule: Rule = HELD) -> None:
        with self.place.database.transaction() as connection:
            alert_rules.put_rule(connection, rule, workspace_id=self.place.workspace, user_id=None)

    def held(self, number: int) -> None:
        """So many receipts are held, and nothing else is there."""
        with self.place.database.transaction() as connection:
            for table in ("holds", "work", "messages", "sends"):
                connection.execute(f"delete from sendonce.{table}")  # type: ignore[call-overload]
        self.held_too(number)

    def held_too(self, number: int) -> None:
        """So many receipts are held besides."""
        ask(self.place, *(f"k:{i}" for i in range(number)))
        self.place.run(
            "update sendonce.work set state = 'held', claim_at = null, check_at = 'infinity', reason = 'late'"
        )
        self.place.run(
            "insert into sendonce.holds (send_id, workspace_id, mailstream, reason, waives)"
            " select send_id, workspace_id, mailstream, reason, array['late'] from sendonce.work"
            " where workspace_id = %s",
            self.place.workspace,
        )

    def look(self) -> None:
        """Some worker looks; enough time passed since the last look."""
        with self.place.database.transaction() as connection:
            look(connection, every=NEVER)

    def pass_time(self, span: timedelta) -> None:
        """Let everything that is waited for have begun that much earlier."""
        self.place.run("update sendonce.alert_rules set since = since - %s", span)
        self.place.run("update sendonce.alert_notices set next_try_at = next_try_at - %s", span)

    def tell(self) -> int:
        """Send all notices that are due now."""
        notifier = Notifier(self.place.database, self.place.vault, self.settings)
        return sum(iter(notifier.tell_one, False))

    def channel(self, kind: ChannelKind, target: Target, *, name: str = "", least: Severity = Severity.WARNING) -> None:
        with self.place.database.transaction() as connection:
            add_channel(
                connection, self.place.vault, workspace_id=self.place.workspace, name=name or kind.value, kind=kind,
                target=target, least_severity=least, user_id=None,
            )  # fmt: skip

    def history(self) -> list[alerts.AlertRow]:
        with self.place.database.transaction() as connection:
            return alerts.list_alerts(connection, self.place.workspace)

    def fire_and_clear(self) -> None:
        self.held(3)
        self.look()
        self.held(0)
        self.look()
        self.pass_time(timedelta(minutes=1))
        self.look()


@pytest.fixture(scope="module")
def database(server_url: str, template_database: str) -> Iterator[Database]:
    """One for all these tests, emptied before each: to make one takes longer than most of them."""
    with own_database(server_url, template_database) as url:
        database = Database(url, pool_size=6)
        yield database
        database.close()


@pytest.fixture
def watch(database: Database) -> Watch:
    with database.transaction() as connection:
        connection.execute(EMPTY)  # type: ignore[call-overload]
    place = Place(database)
    settings = Settings(
        database_url=place.database.url, secret_key="s" * 40, encryption_keys=KEYS, alert_private_targets=True,
        public_url="https://mail.example.com",
    )  # fmt: skip
    return Watch(place, settings)


# ── firing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_rule_fires_once_and_clears_once_and_both_stand_in_the_history(watch: Watch) -> None:
    watch.rule()
    for number in (2, 3, 5, 4):
        watch.held(number)
        watch.look()
    (alert,) = watch.history()
    assert (alert.rule, alert.value, alert.worst, alert.closed_at) == ("held-sends", 3, 5, None)
    watch.held(0)
    watch.look()
    assert watch.history()[0].closed_at is None, "it has to stay low for a while"
    watch.pass_time(timedelta(minutes=1))
    watch.look()
    assert watch.history()[0].closed_at is not None
    watch.look()
    assert len(watch.history()) == 1


def test_a_rule_of_one_mailstream_does_not_count_the_others(watch: Watch) -> None:
    watch.rule(replace(HELD, mailstream="news"))
    watch.held(5)
    watch.look()
    assert watch.history() == []


def test_a_rate_is_of_its_span_over_all_accounts_and_sources_and_silent_while_there_is_little(watch: Watch) -> None:
    watch.rule(replace(HELD, measure=Measure.REJECTED_RATE, threshold=0.2, clears_at=0.1, least=20))
    attempts = (
        "insert into sendonce.rollups (workspace_id, mailstream, account_id, source, minute, attempts,"
        " attempts_rejected) values (%s, 'receipts', %s, %s, date_trunc('minute', now()) - %s, %s, %s)"
    )
    place = watch.place
    place.run(attempts, place.workspace, place.account, "api", timedelta(minutes=20), 100, 100)
    place.run(attempts, place.workspace, place.account, "api", timedelta(minutes=5), 12, 9)
    watch.look()
    assert watch.history() == [], "too long ago, and too few"
    place.run(attempts, place.workspace, NO_ACCOUNT, "outbox", timedelta(minutes=5), 12, 9)
    watch.look()
    assert watch.history()[0].value == 0.75


def test_workers_that_look_at_once_open_one_alert_and_make_one_notice(watch: Watch, ear: Ear) -> None:
    watch.rule()
    watch.channel(ChannelKind.WEBHOOK, webhook_target(ear.url))
    watch.held(3)
    barrier = threading.Barrier(4)

    def one() -> None:
        barrier.wait()
        for _ in range(5):
            watch.look()

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(watch.history()) == 1
    assert watch.tell() == 1
    assert len(ear.heard) == 1


def test_a_rule_that_somebody_looks_at_is_passed_over_by_others(watch: Watch) -> None:
    watch.rule()
    with watch.place.database.transaction() as connection:
        assert look(connection, every=NEVER) == 1
        with watch.place.database.transaction() as other:
            assert look(other, every=NEVER) == 0, "its row is locked"
    with watch.place.database.transaction() as connection:
        assert look(connection, every=timedelta(minutes=1)) == 0, "somebody has just looked"


def test_a_rule_that_is_changed_or_removed_does_not_go_on_firing(watch: Watch) -> None:
    watch.rule()
    watch.held(3)
    watch.look()
    watch.rule(replace(HELD, threshold=50, clears_at=20))
    assert watch.history()[0].closed_at is not None
    watch.look()
    assert len(watch.history()) == 1


def test_the_rules_of_the_first_day_are_quiet_on_an_empty_ledger(watch: Watch) -> None:
    with watch.place.database.transaction() as connection:
        assert len(alert_rules.add_defaults(connection, watch.place.workspace)) == len(DEFAULTS)
        assert alert_rules.add_defaults(connection, watch.place.workspace) == []
    watch.look()
    watch.pass_time(timedelta(hours=1))
    watch.look()
    assert watch.history() == []
    with watch.place.database.transaction() as connection:
        rules = alert_rules.list_rules(connection, watch.place.workspace)
    assert {rule.value for rule in rules} == {0.0}


def test_every_measure_can_be_watched(watch: Watch) -> None:
    for measure in Measure:
        watch.rule(replace(HELD, name=measure.value.replace("_", "-"), measure=measure, threshold=0.5, clears_at=0))
    watch.look()
    with watch.place.database.transaction() as connection:
        rules = alert_rules.list_rules(connection, watch.place.workspace)
    assert {rule.measure for rule in rules if rule.looked_at} == set(Measure)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"name": "Held Sends"}, "lower-case"),
        ({"clears_at": 3.0}, "clears at or below"),
        ({"threshold": float("nan")}, "numbers"),
        ({"measure": Measure.BOUNCE_RATE}, "share of one"),
        ({"hold_for": timedelta(days=8)}, "7 days"),
        ({"span": timedelta(0)}, "a minute"),
        ({"mailstream": "nothing"}, "no mailstream"),
        ({"measure": Measure.DEAD_LETTERS, "mailstream": "news"}, "not counted by mailstream"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_with_the_reason(watch: Watch, changed: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        watch.rule(replace(HELD, **changed))


# ── telling ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_webhook_is_signed_and_says_what_fired_and_that_it_is_over(watch: Watch, ear: Ear) -> None:
    watch.rule()
    target = webhook_target(ear.url)
    watch.channel(ChannelKind.WEBHOOK, target)
    watch.fire_and_clear()
    assert watch.tell() == 2
    events = [json.loads(body) for _, body in ear.heard]
    assert [event["type"] for event in events] == ["alert.fired", "alert.cleared"]
    assert events[0]["data"]["rule"] == "held-sends"
    assert events[0]["data"]["value"] == 3
    for headers, body in ear.heard:
        asked = WebhookRequest(headers=headers, body=body, now=datetime.now(UTC))
        assert verified_id(asked, secrets=target.secret) == headers["webhook-id"]


def test_slack_gets_one_text_in_which_nothing_can_be_a_link_or_a_call(watch: Watch, ear: Ear) -> None:
    watch.place.run("update sendonce.workspaces set title = '<!channel> *Shop* & Co'")
    watch.rule()
    watch.channel(ChannelKind.SLACK, slack_target(ear.url))
    watch.held(3)
    watch.look()
    watch.tell()
    ((_, body),) = ear.heard
    text = json.loads(body)["text"]
    assert "<!channel>" not in text
    assert "&lt;!channel&gt; ∗Shop∗ &amp; Co" in text
    assert "<https://mail.example.com/alerts|Open it>" in text


def test_an_email_goes_straight_to_the_smtp_server(watch: Watch) -> None:
    watch.rule()
    watch.channel(ChannelKind.EMAIL, email_target(["on-call@example.com", "boss@example.com"]))
    watch.held(3)
    watch.look()
    with Simulator(Config()) as simulator:
        watch.settings = replace(
            watch.settings, alert_smtp_url=f"smtp://127.0.0.1:{simulator.smtp_port}?tls=no",
            alert_from="Sendonce <alerts@example.com>",
        )  # fmt: skip
        assert watch.tell() == 1
        messages = list(simulator.books)
    assert len(messages) >= 1
    assert watch.place.count("outbox") == 0, "it does not go through the ledger that it tells of"
    assert watch.history()[0].delivered == 1


def test_what_does_not_arrive_is_tried_again_later_and_shown(watch: Watch, ear: Ear) -> None:
    watch.rule()
    watch.channel(ChannelKind.WEBHOOK, webhook_target(ear.url))
    ear.answers = [500, 503]
    watch.held(3)
    watch.look()
    watch.tell()
    (alert,) = watch.history()
    assert (alert.waiting, alert.delivered, alert.last_error) == (1, 0, "answered 500")
    assert watch.tell() == 0, "it waits"
    for wait in alerts.WAITS[:2]:
        watch.pass_time(wait)
        watch.tell()
    (alert,) = watch.history()
    assert (alert.waiting, alert.delivered, alert.last_error) == (0, 1, None)
    assert len({headers["webhook-id"] for headers, _ in ear.heard}) == 1, "by which the receiver knows a repeat"


def test_it_is_given_up_in_the_end(watch: Watch, ear: Ear) -> None:
    watch.rule()
    watch.channel(ChannelKind.WEBHOOK, webhook_target(ear.url))
    ear.answers = [500] * 100
    watch.held(3)
    watch.look()
    watch.tell()
    for wait in alerts.WAITS:
        watch.pass_time(wait)
        watch.tell()
    watch.pass_time(timedelta(days=2))
    assert watch.tell() == 0
    (alert,) = watch.history()
    assert (alert.given_up, alert.waiting, len(ear.heard)) == (1, 0, len(alerts.WAITS) + 1)


@pytest.mark.parametrize(
    ("status", "error"), [(500, "answered 500"), (302, "answered 302, and redirects are not followed"),
                          (SILENCE, "no answer in time")],
)  # fmt: skip
def test_whatever_a_receiver_does_it_is_told_in_the_end_and_once(
    watch: Watch, ear: Ear, status: int, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.channels.post.SECONDS", 0.2)
    watch.rule()
    watch.channel(ChannelKind.WEBHOOK, webhook_target(ear.url))
    ear.answers = [status]
    watch.held(3)
    watch.look()
    assert watch.tell() == 1
    (alert,) = watch.history()
    assert (alert.waiting, alert.given_up, alert.last_error) == (1, 0, error)
    ear.awake.set()
    watch.pass_time(alerts.WAITS[0])
    assert watch.tell() == 1
    watch.pass_time(timedelta(days=2))
    assert watch.tell() == 0
    (alert,) = watch.history()
    assert (alert.delivered, alert.waiting, len(ear.heard)) == (1, 0, 2)


def test_a_private_address_is_not_called_unless_that_is_allowed(watch: Watch, ear: Ear) -> None:
    watch.settings = replace(watch.settings, alert_private_targets=False)
    watch.rule()
    watch.channel(ChannelKind.WEBHOOK, webhook_target(ear.url))
    watch.held(3)
    watch.look()
    assert watch.tell() == 1
    (alert,) = watch.history()
    assert (alert.given_up, ear.heard) == (1, [])
    assert "private network" in str(alert.last_error)


def killed_while_it_tells(watch: Watch, ear: Ear) -> None:
    """A worker takes the notice, calls, and ends before it could write down what came of it."""
    with watch.place.database.transaction() as connection:
        (notice,) = alerts.take_notices(connection, limit=1)
    Notifier(watch.place.database, watch.place.vault, watch.settings)._sent(notice)


def test_a_worker_that_is_killed_between_telling_and_writing_it_down_has_it_told_again_by_the_same_name(
    watch: Watch, ear: Ear
) -> None:
    watch.rule()
    watch.channel(ChannelKind.WEBHOOK, webhook_target(ear.url))
    watch.held(3)
    watch.look()
    killed_while_it_tells(watch, ear)
    assert watch.tell() == 0, "nobody else has it while it may be under way"
    watch.pass_time(alerts.TAKEN_FOR)
    assert watch.tell() == 1
    assert len({headers["webhook-id"] for headers, _ in ear.heard}) == 1, "by which the receiver knows a repeat"
    (alert,) = watch.history()
    assert (alert.delivered, alert.waiting, len(ear.heard)) == (1, 0, 2)


def test_a_notice_at_which_every_worker_ends_is_given_up_and_keeps_nobody_else_waiting(watch: Watch, ear: Ear) -> None:
    watch.rule()
    watch.channel(ChannelKind.WEBHOOK, webhook_target(ear.url))
    watch.held(3)
    watch.look()
    for _ in range(len(alerts.WAITS) + 1):
        killed_while_it_tells(watch, ear)
        watch.pass_time(alerts.TAKEN_FOR)
    assert watch.tell() == 0
    (alert,) = watch.history()
    assert (alert.given_up, alert.waiting, len(ear.heard)) == (1, 0, len(alerts.WAITS) + 1)


def test_of_two_workers_at_once_one_tells_it(watch: Watch, ear: Ear) -> None:
    watch.rule()
    watch.channel(ChannelKind.WEBHOOK, webhook_target(ear.url))
    watch.held(3)
    watch.look()
    ear.answers = [SILENCE]
    first = Rival(watch.tell)
    until(lambda: len(ear.heard) == 1)
    assert watch.tell() == 0, "it is under way"
    ear.awake.set()
    assert first.result == 1
    assert len(ear.heard) == 1


def test_that_it_is_over_is_told_after_that_it_was(watch: Watch, ear: Ear) -> None:
    watch.rule()
    watch.channel(ChannelKind.WEBHOOK, webhook_target(ear.url))
    ear.answers = [500, 500]
    watch.held(3)
    watch.look()
    watch.tell()
    watch.fire_and_clear()
    assert watch.tell() == 1
    watch.pass_time(alerts.WAITS[1])
    watch.tell()
    types = [json.loads(body)["type"] for _, body in ear.heard]
    assert types == ["alert.fired", "alert.fired", "alert.fired", "alert.cleared"]


def test_a_channel_hears_only_what_is_urgent_enough_for_it(watch: Watch, ear: Ear) -> None:
    watch.rule(replace(HELD, severity=Severity.WARNING))
    watch.channel(ChannelKind.WEBHOOK, webhook_target(ear.url), least=Severity.CRITICAL)
    watch.held(3)
    watch.look()
    assert watch.tell() == 0


def test_a_channel_can_be_tried(watch: Watch, ear: Ear) -> None:
    watch.channel(ChannelKind.WEBHOOK, webhook_target(ear.url))
    with watch.place.database.transaction() as connection:
        try_channel(connection, "webhook", workspace_id=watch.place.workspace, user_id=None)
    assert watch.tell() == 1
    assert json.loads(ear.heard[0][1])["type"] == "alert.test"
    with watch.place.database.transaction() as connection:
        (channel,) = list_channels(connection, watch.place.workspace)
        assert channel.last_delivered_at is not None
        assert "team=mail" not in channel.shown
        remove_channel(connection, "webhook", workspace_id=watch.place.workspace, user_id=None)
        assert list_channels(connection, watch.place.workspace) == []


def test_where_a_channel_goes_is_not_readable_in_the_database(watch: Watch, ear: Ear) -> None:
    watch.channel(ChannelKind.EMAIL, email_target(["planted@example.com"]))
    rows = watch.place.all("select to_jsonb(c)::text as row from sendonce.alert_channels c")
    rows += watch.place.all("select to_jsonb(a)::text as row from sendonce.audit a")
    assert rows
    assert not any("planted" in row["row"] for row in rows)


# ── silence ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def silenced(watch: Watch, **what: str) -> Iterator[int]:
    with watch.place.database.transaction() as connection:
        number = alerts.silence(
            connection, workspace_id=watch.place.workspace, rule=what.get("rule", ""), mailstream="",
            lasts=timedelta(hours=1), reason="a migration", user_id=None,
        )  # fmt: skip
    yield number
    with watch.place.database.transaction() as connection:
        alerts.end_silence(connection, number, workspace_id=watch.place.workspace, user_id=None)


def test_what_fires_in_silence_is_kept_and_told_when_it_goes_on_after_it(watch: Watch, ear: Ear) -> None:
    watch.rule()
    watch.channel(ChannelKind.WEBHOOK, webhook_target(ear.url))
    watch.held(3)
    with silenced(watch, rule="held-sends"):
        watch.look()
        assert watch.tell() == 0
        assert watch.history()[0].silenced
    watch.look()
    assert watch.tell() == 1


def test_what_is_over_before_the_silence_ends_is_not_told_at_all(watch: Watch, ear: Ear) -> None:
    watch.rule()
    watch.channel(ChannelKind.WEBHOOK, webhook_target(ear.url))
    with silenced(watch):
        watch.fire_and_clear()
    watch.look()
    assert watch.tell() == 0
    assert len(watch.history()) == 1


@pytest.mark.parametrize(
    ("changed", "why"),
    [({"reason": " "}, "say why"), ({"lasts": timedelta(days=31)}, "30 days"), ({"rule": "nothing"}, "no rule")],
)
def test_a_silence_that_makes_no_sense_is_refused(watch: Watch, changed: dict[str, Any], why: str) -> None:
    given: dict[str, Any] = {
        "workspace_id": watch.place.workspace, "rule": "", "mailstream": "", "lasts": timedelta(hours=1),
        "reason": "because", "user_id": None,
    } | changed  # fmt: skip
    with watch.place.database.transaction() as connection, pytest.raises(Refused, match=why):
        alerts.silence(connection, **given)


# ── many workspaces ──────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def damaged(place: Place, table: str) -> Iterator[None]:
    """The database refuses to store what the workspace has in this table."""
    place.run(
        "create function sendonce.refuse() returns trigger language plpgsql as"
        " $$ begin raise exception 'this page is damaged'; end $$"
    )
    place.run(
        f"create trigger refuse before insert or update on sendonce.{table} for each row"
        f" when (new.workspace_id = '{place.workspace}') execute function sendonce.refuse()"
    )
    yield
    place.run("drop function sendonce.refuse() cascade")


@pytest.mark.parametrize("table", ["alerts", "alert_rules", "alert_notices"])
def test_what_fails_for_one_workspace_keeps_no_other_from_being_told(watch: Watch, table: str) -> None:
    other = Watch(Place(watch.place.database, name="other"), watch.settings)
    for one in (watch, other):
        one.rule()
        one.channel(ChannelKind.SLACK, slack_target("https://example.com/hook"))
    watch.held(3)
    other.held_too(3)
    with damaged(watch.place, table):
        watch.look()
        assert [alert.rule for alert in other.history()] == ["held-sends"]
        assert told(other) == 1
        assert told(watch) == 0
    watch.look()
    assert [alert.rule for alert in watch.history()] == ["held-sends"], "it was only put off"
    assert (told(watch), told(other)) == (1, 1)


def told(watch: Watch) -> int:
    """So many notices were made in a workspace."""
    place = watch.place
    number: int = place.one(
        "select count(*) as n from sendonce.alert_notices where workspace_id = %s", place.workspace
    )["n"]
    return number


def test_a_rule_that_nobody_could_look_at_waits_anew_before_it_fires(watch: Watch) -> None:
    watch.rule(replace(HELD, hold_for=timedelta(minutes=5)))
    watch.held(3)
    watch.look()
    watch.pass_time(timedelta(minutes=4))
    with damaged(watch.place, "alerts"):
        watch.pass_time(timedelta(minutes=2))
        watch.look()  # it would fire now
    watch.look()
    assert watch.history() == [], "what was not seen did not stay as it was"
    watch.pass_time(timedelta(minutes=6))
    watch.look()
    assert [alert.rule for alert in watch.history()] == ["held-sends"]
