"""Provider events come in: verified, stored, folded, committed, and only then answered (DESIGN §5.15 and §5.16)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from dashboard.identity import send_id
from dashboard.ledger.database import Database
from dashboard.ledger.recording import record
from dashboard.ledger.requests import read_request
from dashboard.lifecycle import EventType
from dashboard.providers import PROVIDERS
from dashboard.providers.base import CannotVerify, Capabilities, ProviderEvent, Unreadable, Webhook
from dashboard.settings import Settings
from dashboard.web import create_app
from dashboard.web.state import NAME
from tests.place import KEYS, WEBHOOK_SECRET, Place
from tests.serving import served, the_app

KEY = "receipt:order_84721:recipient_2045:receipt-v3"


def signed(body: bytes, *, message_id: str = "msg_1", secret: str = WEBHOOK_SECRET) -> dict[str, str]:
    """The headers of an authentic request."""
    timestamp = str(int(datetime.now(UTC).timestamp()))
    key = base64.b64decode(secret.removeprefix("whsec_") + "==")
    signature = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return {
        "svix-id": message_id,
        "svix-timestamp": timestamp,
        "svix-signature": f"v1,{base64.b64encode(signature).decode()}",
    }


def event(kind: str = "email.delivered", **data: Any) -> bytes:
    """The body of one of Resend's requests."""
    content = {"email_id": "49a3", "to": ["ada@example.com"], "subject": "Your receipt"} | data
    return json.dumps({"type": kind, "created_at": "2026-11-30T09:00:05.000Z", "data": content}).encode()


@dataclass
class Hook:
    """The webhook address of an account."""

    app: Flask
    place: Place

    def post(self, body: bytes, headers: dict[str, str] | None = None, *, account: UUID | None = None) -> TestResponse:
        """One authentic request, unless ``headers`` say otherwise."""
        path = f"/webhooks/{account or self.place.account}"
        return self.app.test_client().post(path, data=body, headers=signed(body) if headers is None else headers)

    def send(self, key: str = KEY) -> UUID:
        """A recorded send, which a worker's provider accepted as ``49a3``."""
        raw = {
            "mailstream": "receipts", "key": key, "recipient": {"id": "r", "address": "ada@example.com"},
            "trigger": {"type": "order.paid", "id": "evt_991"},
            "message": {"from": "shop@example.com", "subject": "Your receipt", "text": "Thank you"},
        }  # fmt: skip
        request = read_request(raw, workspace_id=self.place.workspace, source="api", asked_at=datetime.now(UTC))
        with self.place.database.transaction() as connection:
            return record(connection, self.place.vault, [request])[0].send_id

    def state(self, send: UUID) -> tuple[str, str | None]:
        """State and delivery of a send."""
        row = self.place.one("select state::text, delivery::text from sendonce.sends where id = %s", send)
        return row["state"], row["delivery"]


def settings_for(database: Database, *, proxies: int = 0) -> Settings:
    return Settings(database_url=database.url, secret_key="s" * 40, encryption_keys=KEYS, trusted_proxies=proxies)


def app_on(database: Database, place: Place, *, proxies: int = 0) -> Flask:
    return create_app(settings_for(database, proxies=proxies), database, place.vault)


@pytest.fixture
def hook(database_url: str) -> Iterator[Hook]:
    """A workspace with an account at Resend."""
    database = Database(database_url)
    place = Place(database)
    yield Hook(the_app(settings_for(database), database, place.vault), place)
    database.close()


def test_an_event_is_stored_and_folded_when_it_is_answered(hook: Hook) -> None:
    send = hook.send()
    hook.place.send_all("49a3")
    answer = hook.post(event())
    assert (answer.status_code, answer.text) == (200, "ok\n")
    assert "Set-Cookie" not in answer.headers
    assert hook.state(send) == ("accepted", "delivered")
    stored = hook.place.one("select event_id, event_type::text, matched_by, account_id from sendonce.events")
    assert stored == {
        "event_id": "msg_1", "event_type": "delivered", "matched_by": "provider_message_id",
        "account_id": hook.place.account,
    }  # fmt: skip


def test_the_raw_event_is_kept_encrypted(hook: Hook) -> None:
    body = event()
    hook.post(body)
    row = hook.place.one("select raw, fact from sendonce.unmatched")
    assert b"ada@example.com" not in row["raw"]
    assert hook.place.vault.decrypt(row["raw"], row["fact"]) == body


def test_rule_15_a_repeated_event_is_counted_and_changes_nothing(hook: Hook) -> None:
    send = hook.send()
    hook.place.send_all("49a3")
    for _ in range(3):
        assert hook.post(event()).status_code == 200
    assert hook.place.one("select repeats, other_ids from sendonce.events") == {"repeats": 2, "other_ids": 0}
    assert hook.post(event(), signed(event(), message_id="msg_2")).status_code == 200
    assert hook.place.one("select repeats, other_ids from sendonce.events") == {"repeats": 2, "other_ids": 1}
    assert hook.state(send) == ("accepted", "delivered")


def test_rule_15_a_request_that_is_not_the_providers_is_401_and_nothing_is_stored(hook: Hook) -> None:
    other = signed(event(), secret="whsec_" + base64.b64encode(b"o" * 24).decode())
    for headers in ({}, other, signed(event(subject="changed"))):
        assert hook.post(event(), headers).status_code == 401
    assert [hook.place.count(table) for table in ("events", "unmatched", "dead_letters")] == [0, 0, 0]


def test_rule_15_a_malformed_request_becomes_a_dead_letter_and_is_answered_200(hook: Hook) -> None:
    for body in (b"not json", b'{"type": "email.delivered"}', b"[]"):
        assert hook.post(body).status_code == 200
    rows = hook.place.all("select * from sendonce.dead_letters order by id")
    assert [hook.place.vault.decrypt(row["payload"], hook.place.account.bytes) for row in rows] == [
        b"not json", b'{"type": "email.delivered"}', b"[]",
    ]  # fmt: skip
    assert {(row["source"], row["account_id"], row["workspace_id"]) for row in rows} == {
        ("webhook", hook.place.account, hook.place.workspace)
    }
    assert all(row["reason"].startswith("malformed: ") for row in rows)


ODD: dict[str, tuple[bytes, tuple[int, int]]] = {
    "nested beyond any reader": (b'{"type":' + b'{"a":' * 3_000 + b"1" + b"}" * 3_001, (0, 1)),
    "a number of 5,000 digits": (event().replace(b'"49a3"', b"9" * 5_000), (1, 0)),
    "bytes that are no text": (b'{"type": "email.delivered\xff"}', (0, 1)),
    "NUL and half characters": (
        event("email.bounced", email_id="a\0b\ud800", bounce={"type": "Permanent", "message": "\udfff\0"}), (1, 0),
    ),
    "ids over any length": (event(email_id="i" * 100_000, click={"link": "u" * 100_000}), (1, 0)),
    "a time outside the calendar": (event().replace(b"2026-11-30", b"99999-11-30"), (1, 0)),
    "a body of 15 MB": (event(subject="x" * 15_000_000), (1, 0)),
}  # fmt: skip


@pytest.mark.parametrize(("body", "kept"), ODD.values(), ids=ODD.keys())
def test_rule_15_an_odd_request_is_kept_as_event_or_dead_letter_and_answered_200(
    hook: Hook, body: bytes, kept: tuple[int, int]
) -> None:
    assert hook.post(body).status_code == 200
    assert (hook.place.count("unmatched"), hook.place.count("dead_letters")) == kept


def test_rule_15_a_malformed_request_that_comes_again_is_one_dead_letter(hook: Hook) -> None:
    for body in (b"not json", b"[]", b"not json", b"not json"):
        assert hook.post(body).status_code == 200
    rows = hook.place.all("select repeats from sendonce.dead_letters order by id")
    assert [row["repeats"] for row in rows] == [2, 0]


def test_a_provider_that_takes_in_no_mail_has_no_address_for_replies(hook: Hook) -> None:
    client, path = hook.app.test_client(), f"/webhooks/{hook.place.account}/replies"
    assert [client.get(path).status_code, client.post(path, data=b"{}").status_code] == [404, 404]
    hook.place.run("update sendonce.accounts set provider = 'postmark'")
    assert [client.get(path).status_code, client.post(path, data=b"{}").status_code] == [200, 401]


def test_a_mail_that_cannot_be_read_is_taken_and_set_aside_without_its_content(hook: Hook) -> None:
    hook.place.run("update sendonce.accounts set provider = 'postmark'")
    path = f"/webhooks/{hook.place.account}/replies"
    known = {"Authorization": "Basic " + base64.b64encode(WEBHOOK_SECRET.encode()).decode()}
    for _ in range(2):
        assert hook.app.test_client().post(path, data=b"secret words", headers=known).status_code == 200
    assert hook.place.all("select reason, content, repeats from sendonce.mail_replies") == [
        {"reason": "malformed: Expecting value: line 1 column 1 (char 0)", "content": None, "repeats": 1}
    ]
    assert hook.place.count("dead_letters") == 0


def test_rule_15_an_unknown_account_is_404(hook: Hook) -> None:
    assert hook.post(event(), account=uuid4()).status_code == 404
    assert hook.app.test_client().post("/webhooks/no-id", data=b"").status_code == 404


def test_rule_15_a_database_that_is_away_is_503_so_that_the_provider_comes_again(hook: Hook) -> None:
    away = Database("postgresql://127.0.0.1:1/nothing")
    answer = app_on(away, hook.place).test_client().post(
        f"/webhooks/{hook.place.account}", data=event(), headers=signed(event())
    )  # fmt: skip
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
    away.close()


def test_rule_15_trouble_of_ours_is_503_and_never_another_4xx(hook: Hook, capsys: pytest.CaptureFixture[str]) -> None:
    hook.place.run("update sendonce.accounts set secrets = 'x' || secrets")
    assert hook.post(event()).status_code == 503, "its secrets cannot be decrypted"
    hook.place.run("update sendonce.accounts set secrets = null, provider = 'pigeon'")
    assert hook.post(event()).status_code == 503, "its provider is not known"
    assert "ada@example.com" not in "".join(capsys.readouterr())


def test_rule_15_a_body_over_the_limit_is_ours_to_allow(hook: Hook) -> None:
    assert hook.post(b"x" * 20_000_001).status_code == 503
    assert hook.place.count("dead_letters") == 0


def test_rule_15_while_the_ledger_cannot_commit_nothing_is_answered_with_200(hook: Hook) -> None:
    hook.place.run(
        "create function refuse() returns trigger language plpgsql as"
        " $$ begin raise exception 'no' using errcode = 'disk_full'; end $$"
    )
    hook.place.run(
        "create constraint trigger refuse after insert on sendonce.unmatched"
        " deferrable initially deferred for each row execute function refuse()"
    )
    assert hook.post(event()).status_code == 503
    assert hook.place.count("unmatched") == 0
    hook.place.run("drop trigger refuse on sendonce.unmatched")
    assert hook.post(event()).status_code == 200
    assert hook.place.count("unmatched") == 1


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_rule_15_events_in_any_order_give_the_same_send(hook: Hook, order: tuple[int, ...]) -> None:
    send = hook.send()
    hook.place.send_all("49a3")
    bodies = [event("email.sent"), event("email.delivered"), event("email.complained")]
    for i in order:
        assert hook.post(bodies[i], signed(bodies[i], message_id=f"msg_{i}")).status_code == 200
    assert hook.state(send) == ("accepted", "complained")
    assert hook.place.one("select scope::text, suppressed from sendonce.suppressions") == {
        "scope": "bulk", "suppressed": True,
    }  # fmt: skip


def test_rule_16_an_event_matches_only_its_own_workspace(hook: Hook) -> None:
    send = hook.send()
    hook.place.send_all("49a3")
    other = Place(hook.place.database, name="other")
    body = event(tags={"send_id": str(send)})
    assert hook.post(body, account=other.account).status_code == 200
    assert hook.state(send) == ("accepted", None), "neither our id nor the message id leads into another workspace"
    assert hook.place.one("select workspace_id, account_id from sendonce.unmatched") == {
        "workspace_id": other.workspace, "account_id": other.account,
    }  # fmt: skip
    assert hook.post(body).status_code == 200
    assert hook.state(send) == ("accepted", "delivered")


def test_rule_16_an_event_never_matches_by_its_recipient(hook: Hook) -> None:
    send = hook.send()
    hook.place.send_all("49a3")
    assert hook.post(event(email_id="another")).status_code == 200
    assert hook.state(send) == ("accepted", None)
    assert hook.place.count("unmatched") == 1


def test_an_event_that_comes_before_its_send_is_kept_for_it(hook: Hook) -> None:
    made = send_id(hook.place.workspace, "receipts", KEY)
    assert hook.post(event(tags={"send_id": str(made)})).status_code == 200
    assert hook.place.count("unmatched") == 1
    hook.send()
    hook.place.send_all("never asked")
    assert hook.state(made) == ("accepted", "delivered")
    assert (hook.place.count("unmatched"), hook.place.count("attempts")) == (0, 0)


def test_what_is_no_event_of_ours_is_answered_and_not_stored(hook: Hook) -> None:
    for kind in ("email.received", "domain.updated", "contact.created"):
        assert hook.post(event(kind)).status_code == 200
    assert [hook.place.count(table) for table in ("events", "unmatched", "dead_letters")] == [0, 0, 0]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_provider_that_looks_whether_anybody_is_there_finds_somebody(hook: Hook, method: str) -> None:
    client = hook.app.test_client()
    assert client.open(f"/webhooks/{hook.place.account}", method=method).status_code == 200
    assert client.open(f"/webhooks/{uuid4()}", method=method).status_code == 404


@dataclass(frozen=True)
class Several:
    """A provider that tells several facts at once, of which some cannot be read."""

    webhook: Webhook
    name: str = "several"

    def read_webhook(self, *_: object) -> Webhook:
        return self.webhook

    def capabilities(self, _: object) -> Capabilities:
        return Capabilities(webhooks=True)


@pytest.fixture
def tells(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> Callable[[Webhook], TestResponse]:
    """Have the account's provider tell this; a provider is a plug, and this is one more."""

    def tell(webhook: Webhook) -> TestResponse:
        monkeypatch.setattr("dashboard.providers.PROVIDERS", (*PROVIDERS, Several(webhook)))
        hook.place.run("update sendonce.accounts set provider = 'several'")
        return hook.post(b"all of it")

    return tell


def fact(name: str, **members: Any) -> ProviderEvent:
    return ProviderEvent(event_type=EventType.DELIVERED, event_id=name, raw=name.encode(), **members)


def test_rule_15_unreadable_parts_become_dead_letters_and_the_good_ones_are_stored(
    hook: Hook, tells: Callable[[Webhook], TestResponse]
) -> None:
    told = Webhook(events=(fact("a"), fact("b", url="u")), unreadable=(Unreadable(b"part", "no type \0"),))
    assert tells(told).status_code == 200
    rows = hook.place.all("select event_id from sendonce.unmatched order by event_id")
    assert [row["event_id"] for row in rows] == ["a", "b"]
    letter = hook.place.one("select payload, reason from sendonce.dead_letters")
    assert (hook.place.vault.decrypt(letter["payload"], hook.place.account.bytes), letter["reason"]) == (
        b"part", "no type ",
    )  # fmt: skip


def test_rule_15_an_event_that_the_database_refuses_spoils_no_other(
    hook: Hook, tells: Callable[[Webhook], TestResponse]
) -> None:
    assert tells(Webhook(events=(fact("a"), fact("NUL \0", url="u"), fact("c", url="v")))).status_code == 200
    rows = hook.place.all("select event_id from sendonce.unmatched order by event_id")
    assert [row["event_id"] for row in rows] == ["a", "c"]
    letter = hook.place.one("select payload, reason from sendonce.dead_letters")
    assert hook.place.vault.decrypt(letter["payload"], hook.place.account.bytes) == b"NUL \0"
    assert letter["reason"].startswith("the ledger refused it: ")


def test_rule_15_an_event_over_a_limit_of_the_database_or_the_driver_spoils_no_other(
    hook: Hook, tells: Callable[[Webhook], TestResponse]
) -> None:
    hook.place.run(
        "create function refuse() returns trigger language plpgsql as $$ begin if new.event_id = 'long' then"
        " raise exception 'index row size 2720 exceeds maximum' using errcode = 'program_limit_exceeded'; end if;"
        " return new; end $$"
    )
    hook.place.run("create trigger refuse before insert on sendonce.unmatched for each row execute function refuse()")
    told = (fact("a"), fact("long", url="u"), fact("b", url="half \ud800"), fact("c", attempt=10**12, url="w"))
    assert tells(Webhook(events=(*told, fact("d", url="v")))).status_code == 200
    assert [row["event_id"] for row in hook.place.all("select event_id from sendonce.unmatched order by 1")] == [
        "a", "d",
    ]  # fmt: skip
    reasons = hook.place.all("select reason from sendonce.dead_letters order by id")
    assert [row["reason"] for row in reasons] == [
        "the ledger refused it: index row size 2720 exceeds maximum",
        "the ledger refused it: UnicodeEncodeError",
        "the ledger refused it: integer out of range",
    ]
    hook.place.run("drop trigger refuse on sendonce.unmatched")


def test_rule_15_50_000_events_in_one_request_are_stored_but_for_the_bad_ones_before_it_is_answered(
    hook: Hook, tells: Callable[[Webhook], TestResponse]
) -> None:
    bad = {777: "\0", 49_999: "\ud800"}
    told = tuple(fact(f"e{i}", url=f"u{i}{bad.get(i, '')}") for i in range(50_000))
    broken = tuple(Unreadable(b"part", "no type") for _ in range(1_000))
    assert tells(Webhook(events=told, unreadable=broken)).status_code == 200
    letters = hook.place.one("select count(*) as n, sum(1 + repeats) as came from sendonce.dead_letters")
    assert (hook.place.count("unmatched"), letters) == (49_998, {"n": 3, "came": 1_002})


def test_rule_15_what_a_failure_half_way_left_out_is_stored_when_the_provider_comes_again(
    hook: Hook, tells: Callable[[Webhook], TestResponse]
) -> None:
    hook.place.run(
        "create function refuse() returns trigger language plpgsql as $$ begin if new.event_id = 'e900' then"
        " raise exception 'no' using errcode = 'disk_full'; end if; return new; end $$"
    )
    hook.place.run("create trigger refuse before insert on sendonce.unmatched for each row execute function refuse()")
    told = Webhook(events=tuple(fact(f"e{i}", url=f"u{i}") for i in range(1_000)))
    assert tells(told).status_code == 503
    hook.place.run("drop trigger refuse on sendonce.unmatched")
    assert tells(told).status_code == 200
    rows = hook.place.all("select count(*) as n, count(distinct event_id) as ids from sendonce.unmatched")
    assert rows == [{"n": 1_000, "ids": 1_000}]


def test_an_id_that_repeats_from_day_to_day_is_told_apart_by_its_day(
    hook: Hook, tells: Callable[[Webhook], TestResponse]
) -> None:
    days = ("2026-11-29", "2026-11-30")
    facts = tuple(fact("a", event_day=day, url=day) for day in days)
    assert tells(Webhook(events=facts)).status_code == 200
    assert [row["event_day"] for row in hook.place.all("select event_day from sendonce.unmatched order by 1")] == [
        *days
    ]


def test_rule_15_what_cannot_be_verified_for_our_own_lack_is_503_and_not_stored(hook: Hook) -> None:
    hook.place.run("update sendonce.accounts set secrets = null")
    assert hook.post(event()).status_code == 503, "no signing secret is configured"
    assert [hook.place.count(table) for table in ("events", "unmatched", "dead_letters")] == [0, 0, 0]


def test_a_confirmation_is_given_once_the_request_is_stored_and_asked_for_again_where_that_fails(
    hook: Hook, tells: Callable[[Webhook], TestResponse]
) -> None:
    stored: list[int] = []
    told = Webhook(events=(fact("a"),), confirm=lambda: stored.append(hook.place.count("unmatched")))
    assert tells(told).status_code == 200
    assert stored == [1]

    def fail() -> None:
        raise CannotVerify("nobody answers there")

    assert tells(Webhook(confirm=fail)).status_code == 503


def at(hook: Hook, provider: str, **settings: str) -> None:
    """Make the account one of another provider, with these settings alone."""
    hook.place.run(
        "update sendonce.accounts set provider = %s, secrets = null, settings = %s::jsonb",
        provider,
        json.dumps(settings),
    )


def test_rule_15_brevo_drops_an_event_at_503_and_is_asked_to_come_again_by_429(hook: Hook) -> None:
    """Its documents: 429 is repeated, any other 4xx and any 5xx discard the event for good."""
    body = json.dumps({"event": "delivered", "email": "ada@example.com", "message-id": "<m>", "ts_epoch": 1}).encode()
    headers = {"Authorization": f"Basic {base64.b64encode(b'user:one').decode()}"}
    at(hook, "brevo")
    answer = hook.post(body, headers)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "10"), "no password is configured"
    at(hook, "brevo", webhook_secret="user:one")
    hook.place.run("alter table sendonce.unmatched rename to away")
    assert hook.post(body, headers).status_code == 429, "it could not be stored"
    hook.place.run("alter table sendonce.away rename to unmatched")
    away = Database("postgresql://127.0.0.1:1/nothing")
    here = hook.app.extensions[NAME]
    hook.app.extensions[NAME] = replace(here, database=away)
    try:
        assert hook.post(body, headers).status_code == 429, "whose account it is, was known before"
        assert hook.post(body, headers, account=uuid4()).status_code == 503
    finally:
        hook.app.extensions[NAME] = here
        away.close()
    assert hook.post(body, {"Authorization": "Basic eDp5"}).status_code == 401
    assert hook.post(body, headers).status_code == 200
    assert hook.place.count("unmatched") == 1


def test_mandrill_signs_the_public_address_of_the_webhook(hook: Hook) -> None:
    at(hook, "mandrill", webhook_secret="a-key")
    told = json.dumps([{"event": "send", "_id": "m", "ts": 1796029200, "msg": {"email": "ada@example.com"}}])
    body = urlencode({"mandrill_events": told}).encode()
    for base, status in (("https://elsewhere.example.com", 401), (Settings.public_url, 200)):
        content = f"{base}/webhooks/{hook.place.account}mandrill_events{told}"
        signature = base64.b64encode(hmac.digest(b"a-key", content.encode(), hashlib.sha1)).decode()
        headers = {"X-Mandrill-Signature": signature, "Content-Type": "application/x-www-form-urlencoded"}
        assert hook.post(body, headers).status_code == status
        assert hook.place.count("unmatched") == (1 if status == 200 else 0)


def from_mailgun(event: str, *, token: str = "t" * 50, key: bytes = b"signing-key", age: int = 0) -> bytes:
    """A request whose signature leaves the event out, as Mailgun's does."""
    stamp = str(int(time.time()) - age)
    signature = hmac.new(key, (stamp + token).encode(), hashlib.sha256).hexdigest()
    data = {"event": event, "id": event, "timestamp": int(stamp), "recipient": "ada@example.com"}
    signed = {"timestamp": stamp, "token": token, "signature": signature}
    return json.dumps({"signature": signed, "event-data": data}).encode()


def test_a_signature_that_leaves_the_event_out_counts_for_one_body_whichever_process_reads_it(hook: Hook) -> None:
    """What is known of it lies in the ledger, and nothing in the process."""
    at(hook, "mailgun", webhook_secret="signing-key")
    assert hook.post(from_mailgun("complained", key=b"guessed"), {}).status_code == 401
    first = from_mailgun("delivered")
    assert hook.post(first, {}).status_code == 200, "a forged request uses up no token"
    another_process = app_on(hook.place.database, hook.place).test_client()
    forged = first.replace(b"delivered", b"complained")
    for client in (hook.app.test_client(), another_process):
        path = f"/webhooks/{hook.place.account}"
        assert client.post(path, data=first).status_code == 200, "a repeat of the same request is the same request"
        assert client.post(path, data=forged).status_code == 401
    assert hook.post(from_mailgun("opened", token="u" * 50), {}).status_code == 200
    kinds = hook.place.all("select event_type::text as kind from sendonce.unmatched")
    assert sorted(row["kind"] for row in kinds) == ["delivered", "opened"]


def test_a_token_is_forgotten_once_its_signature_no_longer_counts(hook: Hook) -> None:
    at(hook, "mailgun", webhook_secret="signing-key")
    hook.post(from_mailgun("delivered"), {})
    hook.place.run("update sendonce.signed_tokens set good_until = now() - interval '1 second'")
    hook.post(from_mailgun("opened", token="u" * 50), {})
    assert hook.place.count("signed_tokens") == 1


def test_rule_15_of_a_batch_the_good_events_are_stored_and_the_bad_ones_buried(hook: Hook) -> None:
    at(hook, "sparkpost", webhook_networks="127.0.0.1")
    good = [
        {"msys": {"message_event": {"type": "delivery", "event_id": number, "transmission_id": number}}}
        for number in range(2)
    ]
    body = json.dumps([good[0], "no event", {"msys": {"message_event": {"type": 7}}}, good[1], {"msys": {}}]).encode()
    assert hook.post(body, {}).status_code == 200
    assert [hook.place.count(table) for table in ("unmatched", "dead_letters")] == [2, 2]


@pytest.mark.parametrize(
    ("proxies", "forwarded", "status"),
    [
        (0, "50.31.156.9", 401),  # nobody vouches for the header
        (1, "50.31.156.9", 200),
        (1, "50.31.156.9, 203.0.113.5", 401),  # the last one is what the proxy saw; the first anybody may write
        (2, "50.31.156.9, 203.0.113.5", 200),
    ],
)
def test_whence_a_request_comes_is_what_as_many_proxies_as_are_known_say(
    hook: Hook, proxies: int, forwarded: str, status: int
) -> None:
    hook.place.run(
        "update sendonce.accounts set provider = 'postmark', secrets = null, settings = %s::jsonb",
        json.dumps({"webhook_networks": "50.31.156.0/24"}),
    )
    body = json.dumps({"RecordType": "Delivery", "MessageID": "m", "Recipient": "ada@example.com"}).encode()
    answer = app_on(hook.place.database, hook.place, proxies=proxies).test_client().post(
        f"/webhooks/{hook.place.account}", data=body, headers={"X-Forwarded-For": forwarded}
    )  # fmt: skip
    assert answer.status_code == status
    assert hook.place.count("unmatched") == (1 if status == 200 else 0)


def test_over_a_real_socket_many_deliveries_at_once_store_each_event_once(hook: Hook) -> None:
    send = hook.send()
    hook.place.send_all("49a3")
    statuses: list[int] = []

    def deliver(url: str, kind: str, message_id: str) -> None:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
        body = event(kind)
        connection.request("POST", f"/webhooks/{hook.place.account}", body, signed(body, message_id=message_id))
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
        connection.close()

    with served(hook.app) as url:
        threads = [
            threading.Thread(target=deliver, args=(url, kind, kind.replace(".", "_")))
            for kind in ("email.sent", "email.delivered", "email.opened")
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert statuses == [200] * 12
    assert hook.state(send) == ("accepted", "delivered")
    rows = hook.place.all("select event_type::text, repeats from sendonce.events order by 1")
    assert [(row["event_type"], row["repeats"]) for row in rows] == [("accepted", 3), ("delivered", 3), ("opened", 3)]
