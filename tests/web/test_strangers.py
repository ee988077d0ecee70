"""A stranger: an admin of one workspace, and a program of it, ask for everything that another workspace has.

Every route of the application is asked, with the ids, names and links of the other workspace wherever it takes one: in
the path, the query, the form, the JSON body, the cookie. A new route is asked as well; where it takes something that
nobody has said a workspace has, the test says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from werkzeug.routing import Rule
from werkzeug.test import TestResponse

from dashboard.ledger import access, alert_channels, alert_rules, alerts, proposals
from dashboard.ledger.alert_rules import Rule as AlertRule
from dashboard.ledger.dead_letters import bury_webhook
from dashboard.ledger.holds import HoldFilter
from dashboard.ledger.investigations import Investigation, save_investigation
from dashboard.ledger.lookups import save_lookup
from dashboard.ledger.markers import add_marker
from dashboard.ledger.measures import Measure
from dashboard.ledger.replies import save_reply
from dashboard.ledger.tables import ChannelKind, Role, Severity, metadata
from dashboard.ledger.views import Listed, save_view
from dashboard.lifecycle import Decision
from dashboard.web.permissions import Open, permission_of, right_of
from tests.factories import Factory
from tests.place import WEBHOOK_SECRET
from tests.web.conftest import Browser, House

HEARD = "quokka"
"""In every name that a stranger may have heard of, and may type: an answer may repeat it."""
SECRET = "wombat"
"""In everything else that a workspace has."""
COUNTED = 987_654
"""Sends of a minute, as its charts count them."""

REFUSED = {403, 404, 409}


@dataclass
class Theirs:
    """What the other workspace has, by the name under which a route takes it: of an endpoint, a blueprint, or any."""

    workspace: UUID
    named: dict[str, object] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    """What no answer to a stranger may hold."""

    def of(self, rule: Rule, argument: str) -> object:
        """What a route takes by this name."""
        blueprint = rule.endpoint.partition(".")[0]
        for name in (f"{rule.endpoint} {argument}", f"{blueprint} {argument}", argument):
            if name in self.named:
                return self.named[name]
        raise AssertionError(
            f"{rule.endpoint} takes {argument}: furnish() has to say what a workspace has of that kind"
        )


EVERYBODYS = {"kind": "events", "listed": "sends", "finding": "delivered", "overview name": "duplicate_claim_rate"}
"""What routes take that belongs to no workspace."""


def furnish(house: House) -> Theirs:
    """Fill the workspace of the house with one of everything."""
    make, connection, vault = house.factory, house.factory.connection, house.factory.vault
    ada = {"workspace_id": make.workspace, "user_id": house.people["operator"]}
    connection.execute("update sendonce.users set name = 'The wombat ' || name")
    connection.execute("update sendonce.workspaces set name = 'quokka', title = 'Wombat Ltd', second_person_above = 0")
    connection.execute("update sendonce.accounts set name = 'quokka-account'")
    make.stream("quokka-mail")
    make.mailstream = "quokka-mail"
    connection.execute("update sendonce.mailstreams set title = 'Wombat mail', owner = 'Wombats'")
    told = {
        "recipient": "wombat-7", "trigger": "quokka-order", "address": "quokka@example.com", "content": "Dear wombat",
        "subject": "A wombat came",
    }  # fmt: skip
    send = make.accepted(key="quokka:1", message_id="quokka-message", **told)
    held, pending = make.held(key="quokka:held", **told), make.pending(key="quokka:pending", **told)
    make.duplicate(send, when=30, trigger_id="wombat-again")
    event = make.event(send, "delivered", occurred=8, fact=b"once", raw=vault.encrypt(b'{"wombat": 1}', b"once"))
    make.rollup(
        (datetime.now(UTC) - timedelta(minutes=5) - _NOON) // timedelta(minutes=1), recorded=COUNTED, due=COUNTED
    )
    reply = make.reply(send, sender="wombat@example.com", text="Thank you, wombat")
    note = make.note(send, "a wombat called", ticket="QUOKKA-1")
    connection.execute("update sendonce.notes set user_id = %s", (house.people["support"],))
    save_view(connection, listed=Listed.SENDS, name="Wombat view", filters={"mailstream": "quokka-mail"}, **ada)
    (view,) = connection.execute("select id from sendonce.views").fetchone() or (None,)
    lookup = save_lookup(connection, vault, text="wombat@example.com", **ada)
    case = save_investigation(connection, vault, asked=Investigation(who="wombat", complaint="never"), **ada)
    save_reply(connection, cause="delivered", language="en", text="A wombat took it.", **ada)
    seen = proposals.preview(connection, decision=Decision.CANCEL, chosen=HoldFilter(), **ada)
    proposed = proposals.preview(connection, decision=Decision.CANCEL, chosen=HoldFilter(), **ada)
    assert isinstance(seen, proposals.Proposal)
    assert isinstance(proposed, proposals.Proposal)
    proposals.propose(connection, proposal_id=proposed.id, reason="wombats", **ada)
    bury_webhook(
        connection, vault, workspace_id=make.workspace, account_id=make.account, payload=b"wombat", reason="a wombat"
    )
    connection.execute("insert into sendonce.account_checks (account_id) values (%s)", (make.account,))
    secret = vault.encrypt(json.dumps({"webhook_secret": WEBHOOK_SECRET}).encode(), make.account.bytes)
    connection.execute("update sendonce.accounts set secrets = %s where id = %s", (secret, make.account))
    rule = AlertRule(name="quokka-rule", measure=Measure.HELD, threshold=1, clears_at=0, hold_for=timedelta())
    alert_rules.put_rule(connection, rule, **ada)
    make.add(
        "alerts", workspace_id=make.workspace, rule="wombat-rule", measure="held", severity="critical", threshold=1,
        value=2, worst=3,
    )  # fmt: skip
    silence = alerts.silence(
        connection, rule="quokka-rule", mailstream="", lasts=timedelta(hours=1), reason="wombats", **ada
    )
    alert_channels.add_channel(
        connection, vault, name="quokka-channel", kind=ChannelKind.SLACK, least_severity=Severity.WARNING,
        target=alert_channels.slack_target("https://wombat.example/hook"), **ada,
    )  # fmt: skip
    add_marker(connection, kind="deploy", title="Wombat 4.2", **ada)
    token, _ = access.add_token(connection, workspace_id=make.workspace, name="wombat shop")
    house.commit()
    letter = house.rows("select id from sendonce.dead_letters")[0][0]
    hold = house.rows("select id from sendonce.holds")[0][0]
    named: dict[str, object] = {
        "send_id": send, "held send_id": held, "event": event, "reply": reply, "note_id": note,
        "view_id": view, "lookup_id": lookup, "investigate id": case, "proposal_id": proposed.id,
        "worker_id": make.worker, "account": make.account,
        "accounts name": "quokka-account", "operations name": "quokka-mail", "alerts number": silence,
        "dead_letters number": letter, "api_sends id": send, "api_held id": proposed.id, "api_held.one id": held,
        "api_held.decide id": held, "api_operations.drain id": make.worker, "api_operations name": "quokka-account",
        "api_operations.pause_stream name": "quokka-mail", "api_operations.resume_stream name": "quokka-mail",
        "api_operations number": letter, "api_alerts number": silence, "api_alerts name": "quokka-channel",
        "api_alerts.put_rule name": "quokka-rule", "api_alerts.remove_rule name": "quokka-rule", "hold": hold,
    }  # fmt: skip
    ids = {make.workspace, make.account, send, held, pending, view, lookup, case, seen.id, proposed.id, token}
    return Theirs(make.workspace, named, {str(one) for one in ids} | {str(COUNTED), f"{COUNTED:,}", SECRET})


_NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


# ── the stranger ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Stranger:
    """An admin of another workspace, who may see there all that there is, in a browser and by a token."""

    house: House
    browser: Browser
    tokens: tuple[str, str]
    """One that acts for them, and one that acts for nobody."""

    def opens(self, method: str, path: str, *, query: dict[str, str], form: dict[str, Any]) -> TestResponse:
        """Ask for a page, and go where it leads."""
        data = {"csrf_token": self.browser.csrf, **form} if method == "POST" else None
        return self.browser.client.open(path, method=method, query_string=query, data=data, follow_redirects=True)


def call(house: House, token: str, method: str, path: str, *, query: dict[str, str], body: Any) -> TestResponse:
    """What a program asks."""
    given: dict[str, Any] = {"json": body}
    if isinstance(body, bytes):
        given = {"data": body, "content_type": "application/x-ndjson"}
    return house.app.test_client().open(
        path, method=method, query_string=query, headers={"Authorization": f"Bearer {token}"},
        **(given if method in ("POST", "PUT") else {}),
    )  # fmt: skip


def stranger(house: House, password_hash: str) -> Stranger:
    """Mallory, whose workspace has an account and a mailstream, and has sent one email."""
    own = Factory(house.factory.connection, vault=house.factory.vault)
    mallory = own.add("users", login="mallory", name="Mallory", password_hash=password_hash)
    access.put_role(own.connection, user_id=mallory, workspace_id=own.workspace, role=Role.ADMIN, messages=True)
    own.accepted()
    tokens = [
        access.add_token(own.connection, workspace_id=own.workspace, name="m", user_id=user)[1]
        for user in (mallory, None)
    ]
    house.commit()
    browser = house.browser("mallory")
    with browser.client.session_transaction() as cookie:
        cookie["workspace"] = "quokka"  # even signed by ourselves it opens nothing
    return Stranger(house, browser, (tokens[0], tokens[1]))


def form_of(theirs: Theirs, endpoint: str) -> dict[str, Any]:
    """Every field that any form has, naming something of theirs."""
    hold = theirs.named["hold"]
    fields = {
        "hold_id": str(hold), "pick": f"{hold}~0", "which": "picked", "evidence": "0", "decision": "cancel",
        "act": "agree", "reason": "because", "rule": "quokka-rule", "name": "quokka-rule", "mailstream": "quokka-mail",
        "account": "quokka-account", "lasts": "1h", "ticket": "QUOKKA-1", "note": "mine", "q": "quokka-order",
        "who": "quokka-order", "complaint": "never", "workspace": "quokka", "language": "en", "text": "mine",
        "ago": "0", "kind": "deploy", "title": "mine",
    }  # fmt: skip
    return fields | _FORMS.get(endpoint, {})


_FORMS: dict[str, dict[str, Any]] = {
    "proposals.preview": {"reason": ""},
    "alerts.try_channel": {"name": "quokka-channel"},
    "alerts.remove_channel": {"name": "quokka-channel"},
    "alerts.add_channel": {"name": "mine", "kind": "slack", "url": "https://example.com/hook", "least": "warning"},
}


def query_of(endpoint: str) -> dict[str, str]:
    """Every filter that any list has, naming something of theirs."""
    account = {} if endpoint.startswith("overview.") else {"account": "quokka-account"}  # which it refuses at once
    return account | {
        "mailstream": "quokka-mail", "name": "quokka-rule", "who": "operator", "key": "quokka:1",
        "failure": "read_timeout", "range": "1h",
    }  # fmt: skip


def body_of(theirs: Theirs, endpoint: str) -> Any:
    """What a call sends, naming something of theirs."""
    hold = theirs.named["hold"]
    asked = {
        "mailstream": "quokka-mail", "key": "quokka:1", "recipient": {"id": "r", "address": "m@example.com"},
        "trigger": {"type": "t", "id": "i"}, "message": {"from": "m@example.com", "subject": "s", "text": "t"},
    }  # fmt: skip
    bodies: dict[str, Any] = {
        "api_sends.ask": asked,
        "api_sends.ask_for_many": json.dumps(asked).encode(),
        "api_investigations.judge": {"who": "quokka@example.com", "complaint": "twice"},
        "api_held.decide": {"decision": "cancel", "reason": "because", "hold": hold, "evidence": 0},
        "api_held.preview": {"decision": "cancel", "holds": [{"hold": hold, "evidence": 0}]},
        "api_alerts.put_rule": {"measure": "held", "threshold": 5, "mailstream": "quokka-mail"},
        "api_alerts.silence": {"rule": "quokka-rule", "seconds": 3600, "reason": "because"},
        "api_alerts.add_channel": {"name": "mine-too", "kind": "slack", "url": "https://example.com/hook"},
        "api_markers.mark": {"kind": "deploy", "title": "mine"},
    }  # fmt: skip
    return bodies.get(endpoint, {"reason": "because"})


# ── every route ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Asked:
    """One route by one method, its path filled in. ``foreign``: the path names something of theirs."""

    rule: Rule
    method: str
    path: str
    foreign: bool


def routes(house: House, theirs: Theirs, *, by_token: bool) -> Iterator[Asked]:
    """All that ask who asks: pages, or what is for programs."""
    for rule in house.app.url_map.iter_rules():
        declared = permission_of(house.app, rule.endpoint)
        if declared is Open.TO_ALL or rule.endpoint == "health.metrics" or (declared is Open.BY_TOKEN) != by_token:
            continue  # what is open to all is the same for all, and the metrics are for who runs the whole
        values, foreign = {}, False
        for argument in rule.arguments:
            common = next(
                (n for n in (argument, f"{rule.endpoint.partition('.')[0]} {argument}") if n in EVERYBODYS), ""
            )
            values[argument] = EVERYBODYS[common] if common else theirs.of(rule, argument)
            foreign |= not common
        built = rule.build(values, append_unknown=False)
        assert built is not None, rule
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            yield Asked(rule, method, built[1], foreign)


@pytest.fixture
def theirs(house: House) -> Theirs:
    return furnish(house)


def test_no_page_gives_a_stranger_anything_of_another_workspace(
    house: House, theirs: Theirs, password_hash: str
) -> None:
    mallory = stranger(house, password_hash)
    before, wrong, pages = belongings(house, theirs.workspace), [], 0
    for asked in routes(house, theirs, by_token=False):
        endpoint = asked.rule.endpoint
        for query in ({}, query_of(endpoint)) if asked.method == "GET" and not asked.foreign else ({},):
            answer = mallory.opens(asked.method, asked.path, query=query, form=form_of(theirs, endpoint))
            wrong += complaints(asked, answer, theirs)
            pages += 1
    assert wrong == []
    assert belongings(house, theirs.workspace) == before
    assert pages > 80


def test_no_call_gives_a_program_anything_of_another_workspace(
    house: House, theirs: Theirs, password_hash: str
) -> None:
    mallory = stranger(house, password_hash)
    before, wrong, calls = belongings(house, theirs.workspace), [], 0
    for token in mallory.tokens:
        for asked in routes(house, theirs, by_token=True):
            endpoint = asked.rule.endpoint
            query = query_of(endpoint) if asked.method == "GET" else {}
            answer = call(house, token, asked.method, asked.path, query=query, body=body_of(theirs, endpoint))
            wrong += complaints(asked, answer, theirs)
            calls += 1
    assert wrong == []
    assert belongings(house, theirs.workspace) == before
    assert calls > 80


MADE_THERE = {"api_alerts.put_rule"}
"""A name in their path is the name of something new."""


def complaints(asked: Asked, answer: TestResponse, theirs: Theirs) -> list[str]:
    """What is wrong with an answer to a stranger."""
    where, said = f"{asked.method} {asked.path}", f"{answer.headers}\n{answer.text}".casefold()
    if asked.rule.endpoint.startswith("webhooks."):  # providers bring a signature; all learn that the address is one
        return [] if (answer.status_code, answer.text) in WEBHOOKS else [where]
    wrong = [f"{where} shows {word}" for word in theirs.ids if word.casefold() in said]
    if asked.foreign and asked.rule.endpoint not in MADE_THERE:
        if answer.status_code not in REFUSED:
            wrong.append(f"{where} is answered with {answer.status_code}")
        if HEARD in said:
            wrong.append(f"{where} shows {HEARD}")
    understood = answer.status_code not in (400, 415) or HEARD in said  # where what is named is what is refused
    if answer.status_code >= 500 or not understood:
        wrong.append(f"{where} is answered with {answer.status_code}: form_of() or body_of() has to say what it takes")
    return wrong


WEBHOOKS = {(200, "ok\n"), (401, "not authentic\n"), (404, "no such account\n")}  # a provider that takes in no mail


def belongings(house: House, workspace: UUID) -> dict[str, object]:
    """All rows of a workspace, and those that are of none, such as its messages and the workers."""
    of_each = {}
    for table in metadata.sorted_tables:
        if table.name in ("sessions", "login_failures"):
            continue
        own = "id" if table.name == "workspaces" else "workspace_id"
        where = f"where {own} = '{workspace}'" if own in table.c else ""
        of_each[table.name] = house.rows(
            f"select count(*), md5(string_agg(t::text, '|' order by t::text)) from sendonce.{table.name} t {where}"
        )[0]
    return of_each


# ── what is typed ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_stranger_finds_nothing_by_what_they_have_heard_of(house: House, theirs: Theirs, password_hash: str) -> None:
    mallory = stranger(house, password_hash)
    own = {str(theirs.named["send_id"])}
    for text in (*own, "quokka:1", "quokka:", "quokka-order", "quokka@example.com", "quokka-message", "#QUOKKA-1"):
        for path in ("/search", "/search/ahead"):
            found = mallory.opens("POST", path, query={}, form={"q": text, "pick": str(theirs.named["send_id"])})
            assert found.status_code == 200
            assert not [word for word in theirs.ids - {text} if word.casefold() in found.text.casefold()], text
        for complaint in ("twice", "never"):
            told = call(
                house,
                mallory.tokens[0],
                "POST",
                "/api/v1/investigations",
                query={},
                body={"who": text, "complaint": complaint},
            )
            assert (told.json or {})["sends"] == []
            assert (told.json or {})["send"] is None
    drawn = [
        re.sub(r'"\d{4}-[^"]*"', "", mallory.browser.get("/overview/figures", query={"mailstream": name}).text)
        for name in ("quokka-mail", "nobodys")
    ]
    assert drawn[0] == drawn[1], "the charts of a mailstream of others are those of one that nobody has"
    assert mallory.browser.get("/overview/figures", query={"account": "quokka-account"}).status_code == 400


def test_a_proposal_of_others_is_neither_agreed_to_nor_declined_nor_decided(
    house: House, theirs: Theirs, password_hash: str
) -> None:
    mallory = stranger(house, password_hash)
    before = belongings(house, theirs.workspace)
    for act in ("agree", "decline", "propose"):
        answer = mallory.opens(
            "POST", f"/held/proposals/{theirs.named['proposal_id']}", query={}, form={"act": act, "reason": "because"}
        )
        assert answer.status_code == 404
    held, hold = theirs.named["held send_id"], theirs.named["hold"]
    own = house.rows("select id from sendonce.sends where workspace_id <> %s", theirs.workspace)[0][0]
    for decision in Decision:
        for send in (held, own):  # their hold, by the page of their send and by that of one's own
            answer = mallory.opens(
                "POST", f"/held/{send}", query={},
                form={"decision": decision.value, "hold_id": str(hold), "evidence": "0", "reason": "because"},
            )  # fmt: skip
            assert answer.status_code in REFUSED
    assert belongings(house, theirs.workspace) == before


def test_whoever_cancels_a_send_of_others_is_in_nobodys_way_and_learns_nothing_of_it(
    house: House, theirs: Theirs, password_hash: str
) -> None:
    mallory = stranger(house, password_hash)
    send = theirs.named["held send_id"]
    house.factory.connection.execute("select from sendonce.work where send_id = %s for update", (send,))  # as a worker
    answer = call(
        house, mallory.tokens[0], "POST", f"/api/v1/sends/{send}/cancel", query={}, body={"reason": "because"}
    )
    house.factory.connection.rollback()
    assert answer.status_code == 404


# ── within one workspace ─────────────────────────────────────────────────────────────────────────────────────────────


def test_no_page_opens_below_its_role_or_without_its_right(house: House, theirs: Theirs) -> None:
    access.put_role(
        house.factory.connection, user_id=house.people["support"], workspace_id=theirs.workspace, role=Role.SUPPORT,
        reveal=False, messages=False,
    )  # fmt: skip
    house.commit()
    browsers = {role: house.browser(role.value) for role in (Role.SUPPORT, Role.OPERATOR)}
    before, opened, refused = belongings(house, theirs.workspace), [], 0
    for asked in routes(house, theirs, by_token=False):
        needed, right = permission_of(house.app, asked.rule.endpoint), right_of(house.app, asked.rule.endpoint)
        assert isinstance(needed, Role)
        for role, browser in browsers.items():
            if access.includes(role, needed) and (right is None or role is not Role.SUPPORT):
                continue
            form = {"csrf_token": browser.csrf, **form_of(theirs, asked.rule.endpoint)}
            answer = browser.client.open(asked.path, method=asked.method, data=form if asked.method == "POST" else None)
            refused += 1
            if answer.status_code != 403:
                opened.append(f"{asked.method} {asked.path} is answered with {answer.status_code} to {role}")
    assert opened == []
    assert belongings(house, theirs.workspace) == before
    assert refused > 40


FOR_ANY_TOKEN = {"api_sends", "api_markers", "api_investigations"}
"""Asking for sends and looking at them; all else needs a token that acts for an operator."""
FOR_ADMINS = {"api_alerts.add_channel", "api_alerts.remove_channel", "api_operations.audit_log"}


def test_no_call_is_taken_below_its_role(house: House, theirs: Theirs) -> None:
    connection = house.factory.connection
    tokens = {"unknown": "so_unknown"}
    for who in ("nobody", "support", "operator"):
        _, tokens[who] = access.add_token(
            connection, workspace_id=theirs.workspace, name=who, user_id=house.people.get(who)
        )
    house.commit()
    before, taken = belongings(house, theirs.workspace), []
    for asked in routes(house, theirs, by_token=True):
        blueprint = asked.rule.endpoint.partition(".")[0]
        if blueprint == "webhooks":
            continue
        wanted = {"unknown": 401}
        if blueprint not in FOR_ANY_TOKEN:
            wanted |= {"nobody": 403, "support": 403}
        if asked.rule.endpoint in FOR_ADMINS:
            wanted["operator"] = 403
        for who, status in wanted.items():
            body = body_of(theirs, asked.rule.endpoint)
            answer = call(house, tokens[who], asked.method, asked.path, query={}, body=body)
            if answer.status_code != status:
                taken.append(f"{asked.method} {asked.path} is answered with {answer.status_code} to {who}")
    assert taken == []
    assert belongings(house, theirs.workspace) == before
