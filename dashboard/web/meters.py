"""What the web counts for Prometheus, and what the ledger says of itself when it is asked.

Counters are kept by each process and added up over all of them (the multi-process mode of prometheus_client, which
``sendonce web`` turns on). The gauges of the ledger are read when they are asked for: from the outbox, the work table,
the roll-ups and small tables, never from sends, attempts or events. Labels are names of workspaces, mailstreams,
accounts, rules and endpoints: never an id of a send, never anything about a person.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

from flask import Flask, g, request
from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from werkzeug.wrappers import Response

from dashboard.ledger.database import Connection, Database, database_now
from dashboard.ledger.metrics import SILENCE, Open, Scraped, read_open_all, read_series, read_watched_all

disable_created_metrics()  # type: ignore[no-untyped-call]  # they say when each process began, which nobody asks for

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
HOUR = timedelta(hours=1)

REQUESTS = Counter("sendonce_web_requests", "Requests that were answered.", ["endpoint", "method", "status"])
REQUEST_SECONDS = Histogram(
    "sendonce_web_request_duration_seconds", "How long answers took.", ["endpoint"], buckets=SECONDS
)
ASKED = Counter("sendonce_web_asked_sends", "Requests for sends over HTTP, by what they met.", ["verdict"])
EVENTS = Counter("sendonce_web_provider_events", "Events that providers told.", ["provider", "type"])
WEBHOOKS_REFUSED = Counter("sendonce_web_refused_webhooks", "Webhook calls that were refused.", ["provider"])

METERS = (REQUESTS, REQUEST_SECONDS, ASKED, EVENTS, WEBHOOKS_REFUSED)


def install(app: Flask) -> None:
    """Count every answer."""
    app.before_request(_begin)
    app.after_request(_count)


def _begin() -> None:
    g.began = time.monotonic()


def _count(response: Response) -> Response:
    endpoint = request.endpoint or "none"
    method = request.method if request.method in ("GET", "POST", "PUT", "DELETE", "HEAD") else "other"
    REQUESTS.labels(endpoint, method, str(response.status_code)).inc()
    if "began" in g:
        REQUEST_SECONDS.labels(endpoint).observe(time.monotonic() - g.began)
    return response


def exposition(database: Database) -> bytes:
    """All of it in Prometheus' text format. Raises what the database raises."""
    own: Collector | CollectorRegistry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        own = registry
    ledger = CollectorRegistry(auto_describe=False)
    ledger.register(LedgerCollector(database))
    return generate_latest(own) + generate_latest(ledger)


class LedgerCollector(Collector):
    """The gauges of the ledger, read in one snapshot."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def collect(self) -> Iterator[Metric]:
        """Read them."""
        with self._database.snapshot() as connection:
            families = list(_families(connection))
        yield from families


def _age(state: str) -> Callable[[Scraped, list[Open]], float]:
    """For how long the first send of a workspace waits in a state."""
    return lambda _, opened: max((one.age for one in opened if one.state == state), default=0.0)


_BY_WORKSPACE: tuple[tuple[str, str, Callable[[Scraped, list[Open]], float]], ...] = (
    ("outbox_requests", "Requests that wait to be relayed; counted up to 10,000.", lambda row, _: row.outbox),
    ("outbox_age_seconds", "Age of the oldest request that could be relayed now.", lambda row, _: row.outbox_age),
    ("oldest_due_send_age_seconds", "How long the longest-waiting send has been due and unclaimed.", _age("pending")),
    ("oldest_unknown_send_age_seconds", "How long the longest-unknown send has been so.", _age("unknown")),
    ("oldest_held_send_age_seconds", "How long the longest-held send waits for a person.", _age("held")),
    ("stale_claims", "Claims past their lease.", lambda _, opened: sum(one.stale for one in opened)),
    (
        "dead_letters", "What could not be taken and waits for a person; counted up to 1,000.",
        lambda row, _: row.dead_letters,
    ),
)  # fmt: skip


def _families(connection: Connection) -> Iterator[Metric]:
    rows = read_watched_all(connection)
    names = {row.workspace_id: row.workspace for row in rows}

    def gauge(name: str, told: str, labels: list[str], values: list[tuple[list[str], float | None]]) -> Metric:
        family = GaugeMetricFamily(f"sendonce_{name}", told, labels=labels)
        for label_values, value in values:
            if value is not None:
                family.add_metric(label_values, value)
        return family

    opened = read_open_all(connection)
    of_it = {id: [one for one in opened if one.workspace_id == id] for id in names}
    for name, told, value in _BY_WORKSPACE:
        yield gauge(name, told, ["workspace"], [([row.workspace], value(row, of_it[row.workspace_id])) for row in rows])
    yield gauge(
        "open_sends", "Sends that are not settled, by state; counted up to 10,000.",
        ["workspace", "mailstream", "state"],
        [([names.get(one.workspace_id, "?"), one.mailstream, one.state], one.number) for one in opened],
    )  # fmt: skip
    accounts = connection.execute(
        "select workspace_id, name, provider, coalesce(paused_until > now(), false)::int from sendonce.accounts"
    ).fetchall()
    yield gauge(
        "account_paused", "1: nothing is submitted on this account now.", ["workspace", "account", "provider"],
        [([names.get(row[0], "?"), row[1], row[2]], row[3]) for row in accounts],
    )  # fmt: skip
    workers = connection.execute(
        "select count(*) filter (where heartbeat_at >= now() - %(silence)s),"
        " count(*) filter (where heartbeat_at < now() - %(silence)s)"
        " from sendonce.workers where stopped_at is null and heartbeat_at > now() - interval '15 minutes'",
        {"silence": SILENCE},
    ).fetchone() or (0, 0)
    yield gauge(
        "workers", "Worker processes: running, or lost within the last 15 minutes.", ["state"],
        [(["running"], workers[0]), (["lost"], workers[1])],
    )  # fmt: skip
    off = connection.execute("select count(*) from sendonce.settings where name = 'sending_off'").fetchone()
    yield gauge(
        "sending_enabled", "0: the ledger is not where it was, and nothing is sent.", [], [([], 1 - (off or (0,))[0])]
    )
    firing = connection.execute(
        "select workspace_id, rule, severity::text, count(*) from sendonce.alerts"
        " where closed_at is null group by 1, 2, 3"
    ).fetchall()
    yield gauge(
        "alerts_firing", "Alerts of Sendonce's own rules that fire now.", ["workspace", "rule", "severity"],
        [([names.get(row[0], "?"), row[1], row[2]], row[3]) for row in firing],
    )  # fmt: skip
    now = database_now(connection)
    totals = [(row.workspace, read_series(connection, row.workspace_id, now - HOUR, now).total) for row in rows]
    for name, told, attribute in (
        ("last_hour_deliveries", "Deliveries of keys, first and later ones.", "deliveries"),
        ("last_hour_later_deliveries", "Deliveries of keys that were known already.", "later_deliveries"),
        ("last_hour_intended_sends", "Sends due, without suppressed and cancelled ones.", "intended"),
        ("last_hour_accepted_sends", "Sends due that are accepted.", "due_accepted"),
        ("last_hour_attempts", "Attempts started.", "attempts"),
        ("last_hour_ambiguous_attempts", "Attempts started whose outcome is not known.", "attempts_ambiguous"),
        ("last_hour_bounces", "Bounces told by providers.", "bounced"),
        ("last_hour_complaints", "Complaints told by providers.", "complained"),
    ):  # fmt: skip
        yield gauge(
            name, f"{told} In the last hour, from roll-ups.", ["workspace"],
            [([workspace], getattr(total, attribute)) for workspace, total in totals],
        )  # fmt: skip
