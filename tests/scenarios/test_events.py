"""What providers tell: S23 to S27, S31."""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from dashboard.insight.judging import Cause
from dashboard.insight.timeline import Lane
from dashboard.ledger.events import Told
from dashboard.lifecycle import EventType
from dashboard.providers import PROVIDERS, provider
from dashboard.providers.base import Capabilities, Settings, Unreadable, Webhook, WebhookRequest
from dashboard.providers.resend import events_of
from dashboard.providers.standard_webhooks import verified_id
from tests.conftest import SOAK
from tests.crew import hear, until
from tests.scenarios.scene import Answered, Scene, event, signed


@dataclass(frozen=True)
class Batches:
    """A provider that tells many facts in one signed request, as several do: here a list of Resend's, each with an id
    of its own, so that the simulator's sends are told about. A provider is a plug, and this is one more."""

    name: str = "batches"

    def capabilities(self, settings: Settings) -> Capabilities:
        """Those of Resend, whose facts it tells."""
        return provider("resend").capabilities(settings)

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Verify the raw bytes; then each part for itself."""
        verified_id(request, secrets=settings["webhook_secret"])
        events, unreadable = [], []
        for part in json.loads(request.body):
            raw = json.dumps(part).encode()
            try:
                events += events_of(part["id"] if isinstance(part, dict) else "", raw)
            except ValueError as error:
                unreadable.append(Unreadable(raw, str(error)))
        return Webhook(tuple(events), tuple(unreadable))


@pytest.fixture
def batches(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> UUID:
    """The account of receipts, told about in batches."""
    account = scene.mailstream(policy="hold", keys=False)
    monkeypatch.setattr("dashboard.providers.PROVIDERS", (*PROVIDERS, Batches()))
    return account


def tells_in_batches(scene: Scene, account: UUID) -> None:
    scene.place.run("update sendonce.accounts set provider = 'batches' where id = %s", account)


def accepted(scene: Scene, *keys: str, **how: Any) -> dict[UUID, str]:
    """Sends that the provider took, with its message ids."""
    with scene.staff():
        sends = scene.ask(*keys, **how)
        until(lambda: scene.of(*sends).sends() == {"accepted": len(sends)})
    ids = {UUID(row.send_id): row.message_id for row in scene.simulator.books if row.send_id}
    return {send: ids[send] for send in sends}


# ── S23 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S23_the_same_provider_event_49_times(scene: Scene) -> None:
    """The roll-ups count no opens and clicks yet: these are counted in the events of the send."""
    account = scene.mailstream(policy="hold")
    ((send, pm_1),) = accepted(scene, "order:1").items()
    delivered = event("delivered", pm_1, at="2026-11-30T10:00:04Z")
    click = {"timestamp": "2026-11-30T10:06:00Z", "link": "https://shop.example.test/"}
    answers = [scene.tell(account, delivered, "msg_1") for _ in range(46)]
    answers += [scene.tell(account, delivered, f"msg_{n}") for n in (2, 3, 4)]
    answers += [
        scene.tell(account, event("opened", pm_1, at=f"2026-11-30T10:0{minute}:00Z"), f"msg_opened_{minute}")
        for minute in (0, 5)
    ]
    answers.append(scene.tell(account, event("clicked", pm_1, click=click), "msg_clicked"))
    assert Counter(answer.kind for answer in answers) == {"2xx": 52}
    told = scene.place.all(
        "select event_type::text as kind, count(*) as n, sum(repeats) as repeats, sum(other_ids) as others"
        " from sendonce.events where send_id = %s group by 1 order by 1", send,
    )  # fmt: skip
    assert {row["kind"]: row["n"] for row in told} == {"delivered": 1, "opened": 2, "clicked": 1}
    (first,) = [row for row in told if row["kind"] == "delivered"]
    assert (first["repeats"], first["others"]) == (45, 3)
    scene.shows(
        sends={"accepted": 1}, delivery={"delivered": 1}, suppressions=[], provider_took=1,
        events={"stored": 4, "unmatched": 0, "quarantined": 0},
    )  # fmt: skip
    lines = [(entry.what, entry.count) for entry in scene.timeline(send) if entry.lane is Lane.EVENT]
    assert Counter(lines) == {
        ("Delivered to the mail server", 49): 1, ("Opened", 1): 2, ("A link was clicked", 1): 1,
    }  # fmt: skip
    assert scene.says_one_acceptance(send).cause is Cause.DELIVERED


# ── S24 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S24_the_event_overtakes_the_answer(scene: Scene) -> None:
    account = scene.mailstream(policy="hold", keys=False)
    scene.simulator.configure(honour_keys=False, hold_answers=True)
    scene.worker()
    s1, s2 = scene.ask("order:1", "order:2")
    assert scene.simulator.wait_taken(2)
    ids = {row.send_id: row.message_id for row in scene.simulator.books}
    told = [(ids[str(s1)], s1), (ids[str(s2)], None)]
    answers = [
        scene.tell(account, event(kind, message_id, send=send))
        for message_id, send in told
        for kind in ("sent", "delivered")
    ]
    assert [answer.kind for answer in answers] == ["2xx"] * 4
    assert max(answer.seconds for answer in answers) < 2, "none waits for the worker"
    scene.shows(sends={"accepted": 1, "claimed": 1}, attempts={"accepted": 1, "submitting": 1})
    scene.simulator.release_answers()
    scene.wait_for(accepted=2)
    until(lambda: scene.place.count("unmatched") == 0)
    scene.end()
    scene.shows(
        provider_took=2, most_copies=1, sends={"accepted": 2}, attempts={"accepted": 2}, delivery={"delivered": 2},
        claims=2,
    )  # fmt: skip
    scene.shows(events={"stored": 4, "unmatched": 0, "quarantined": 0})
    assert scene.errors() == [], "the worker's own record of the answers met no error"
    for send in (s1, s2):
        scene.says(send, Cause.DELIVERED, words="delivered to the mail server")
    assert any("received before the answer to our own call" in entry.detail for entry in scene.timeline(s2))


# ── S25 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

FACTS = (
    (EventType.ACCEPTED, timedelta(seconds=1)),
    (EventType.DEFERRED, timedelta(seconds=2)),
    (EventType.DELIVERED, timedelta(seconds=4)),
    (EventType.OPENED, timedelta(minutes=5)),
    (EventType.COMPLAINED, timedelta(minutes=6)),
)


@pytest.mark.parametrize("times", [1, 2])
def test_S25_events_in_every_possible_order(scene: Scene, times: int) -> None:
    """Each order is played on a send, a recipient and so a suppression of its own in one ledger, the n-th event of all
    of them in one request: what the events of one send do to it does not depend on its neighbours.
    """
    account = scene.mailstream(policy="hold")
    orders = list(itertools.permutations(range(len(FACTS))))
    assert len(orders) == 120
    sends = list(accepted(scene, *(f"order:{i}" for i in range(120))))
    began = datetime.now(UTC).replace(microsecond=0)
    for place in range(len(FACTS)):
        told = []
        for send, order in zip(sends, orders, strict=True):
            kind, after = FACTS[order[place]]
            told += [
                Told(
                    event_type=kind, event_id=f"{send} {kind}", send_id=str(send), occurred_at=began + after, raw=b"{}"
                )
            ] * times
        hear(scene.place, *told, account=account)
    scene.shows(
        sends={"accepted": 120}, delivery={"complained": 120}, suppressions=["complained"] * 120,
        events={"stored": 600, "unmatched": 0, "quarantined": 0}, provider_took=120,
    )  # fmt: skip
    marks = {
        tuple((entry.what, entry.at, entry.count) for entry in scene.timeline(send) if entry.lane is Lane.EVENT)
        for send in sends
    }
    (line,) = marks
    assert [at - began for _, at, _ in line] == [after for _, after in FACTS], "sorted by the provider's time"
    assert {count for _, _, count in line} == {times}
    assert {what: at - began for what, at, _ in line}["Delivered to the mail server"] == timedelta(seconds=4)
    for send in sends[::20]:
        scene.says(send, Cause.COMPLAINED, words="delivered to the mail server")
    with scene.staff():
        next_campaign = scene.ask(*(f"issue:{i}" for i in range(120)), stream="news")
        scene.wait_for(accepted=120, suppressed=120)
    scene.shows(provider_took=120)
    scene.says(next_campaign[0], Cause.SUPPRESSED, words="reported an earlier email as spam")


# ── S26 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S26_one_rotten_event_in_a_batch_of_a_hundred(scene: Scene, batches: UUID) -> None:
    """The mark of an altered text is the replacement character in it; its raw event is kept as it came."""
    taken = accepted(scene, *(f"order:{i}" for i in range(100)))
    sends = list(taken)
    tells_in_batches(scene, batches)
    parts: list[Any] = [_part("delivered", *pair) for pair in taken.items()]
    parts[36] = _part("bounced", sends[36], taken[sends[36]], bounce={"type": "Permanent", "message": "no\0such user"})
    parts[57] = 58
    body = json.dumps(parts).encode()
    assert rb"no\u0000such user" in body
    answers = [scene.tell(batches, body, "msg_batch") for _ in range(2)]
    assert [answer.kind for answer in answers] == ["2xx"] * 2
    scene.shows(events={"stored": 99, "unmatched": 0, "quarantined": 1}, dead_letters=1)
    altered = scene.place.one("select reason, raw, fact, repeats from sendonce.events where send_id = %s", sends[36])
    assert (altered["reason"], altered["repeats"]) == ("no\ufffdsuch user", 1)
    assert rb"no\u0000such user" in scene.place.vault.decrypt(altered["raw"], altered["fact"])
    scene.says(sends[36], Cause.BOUNCED, words="no\ufffdsuch user")
    scene.shows(delivery={"delivered": 98, "bounced": 1, None: 1}, suppressions=["bounced"])
    letter = scene.place.one("select payload, reason from sendonce.dead_letters")
    assert scene.place.vault.decrypt(letter["payload"], batches.bytes) == b"58"


def _part(kind: str, send: UUID, message_id: str, **data: Any) -> dict[str, Any]:
    part: dict[str, Any] = json.loads(event(kind, message_id, send=send, **data))
    return {"id": f"evt_{kind}_{send}"} | part


# ── S27 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S27_a_signature_is_over_bytes_not_over_meaning(scene: Scene, batches: UUID) -> None:
    taken = accepted(scene, "order:1", "order:2")
    before = scene.place.all("select * from sendonce.sends order by id")
    tells_in_batches(scene, batches)
    first, second = (json.dumps(_part("delivered", *pair)) for pair in taken.items())
    body = (f'[{first[:-1]}, "words":  "caf\\u00e9 café", "sizes": [1.0, 1e3]}},\n {second}]\n').encode()
    elsewhere = "whsec_c29tZWJvZHktZWxzZS1zb21lYm9keS1lbHNlLTA="
    with capture_logs() as said:
        others = {
            "written out again": scene.post(_hook(batches), json.dumps(json.loads(body)).encode(), signed(body)),
            "one byte changed": scene.post(_hook(batches), body.replace(b"1e3", b"1e4"), signed(body)),
            "without a signature": scene.post(_hook(batches), body, {"content-type": "application/json"}),
            "another workspace's secret": scene.post(_hook(batches), body, signed(body, secret=elsewhere)),
        }
    assert {name: answer.status for name, answer in others.items()} == dict.fromkeys(others, 401)
    assert [line["action"] for line in said] == ["webhook_refused"] * 4, "refused requests are counted in the log"
    scene.shows(events={"stored": 0, "unmatched": 0, "quarantined": 0}, suppressions=[])
    assert scene.place.all("select * from sendonce.sends order by id") == before
    assert scene.post(_hook(batches), body, signed(body)).kind == "2xx"
    scene.shows(events={"stored": 2, "unmatched": 0, "quarantined": 0}, delivery={"delivered": 2})


def _hook(account: UUID) -> str:
    return f"/webhooks/{account}"


# ── S31 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

ROUNDS = 20 if SOAK else 2


def test_S31_two_batches_of_events_cross(scene: Scene, batches: UUID) -> None:
    answers: list[Answered] = []
    with scene.staff(poll_seconds=0.1):
        for number in range(ROUNDS):
            sends = scene.ask(*(f"order-{number}:{i}" for i in range(500)))
            until(lambda: scene.of(*sends).sends() == {"accepted": 500})  # noqa: B023  # waited for in this round
            tells_in_batches(scene, batches)
            answers += _cross(scene, batches, sends)
            scene.place.run("update sendonce.accounts set provider = 'resend' where id = %s", batches)
    assert Counter(answer.kind for answer in answers) == {"2xx": 2 * ROUNDS}
    assert max(answer.seconds for answer in answers) < 5
    scene.shows(
        events={"stored": 1000 * ROUNDS, "unmatched": 0, "quarantined": 0}, sends={"accepted": 500 * ROUNDS},
        delivery={"delivered": 500 * ROUNDS}, provider_took=500 * ROUNDS, most_copies=1,
    )  # fmt: skip
    told = scene.place.one(
        "select count(*) as n from"
        " (select from sendonce.events group by send_id having count(distinct event_type) = 2) s"
    )
    assert told["n"] == 500 * ROUNDS, "none misses one of its two events"


def _cross(scene: Scene, account: UUID, sends: list[UUID]) -> list[Answered]:
    """One request in ascending order, one in descending order, at the same instant."""
    ids = {UUID(row.send_id): row.message_id for row in scene.simulator.books if row.send_id}
    bodies = [
        json.dumps([_part(kind, send, ids[send]) for send in order]).encode()
        for kind, order in (("sent", sorted(sends)), ("delivered", sorted(sends, reverse=True)))
    ]
    barrier = threading.Barrier(2)

    def tell(body: bytes) -> Answered:
        barrier.wait()
        return scene.tell(account, body)

    with ThreadPoolExecutor(2) as provider:
        return [each.result() for each in [provider.submit(tell, body) for body in bodies]]
