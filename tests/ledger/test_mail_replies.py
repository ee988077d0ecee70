"""Mail that came in: which send it answers, what is kept of it, and what is not believed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from dashboard.identity import reply_address, send_of_reply_address
from dashboard.insight.judging import Cause, Sureness
from dashboard.insight.timeline import timeline
from dashboard.insight.verdict import verdict
from dashboard.ledger import mail_replies
from dashboard.ledger.database import database_now
from dashboard.ledger.mail_replies import MOST, SET_ASIDE_FOR, Mail, Name, keep, read_content, read_set_aside, set_aside
from dashboard.ledger.recording import record
from dashboard.ledger.requests import read_request
from dashboard.ledger.retention import strip
from dashboard.ledger.streams import BadStream, check_rules, rules_for
from dashboard.ledger.trace import MailReply, read_message, read_trace
from dashboard.ledger.vault import Unreadable, Vault
from dashboard.lifecycle import MailClass, Verdict
from tests.factories import ADDRESS, Factory, at

RECEIVED = at(3600)


def mail(
    *names: UUID | str, sender: str = ADDRESS, to: str = "shop@example.com", message_id: str | None = None,
    text: str = "", automatic: bool = False, written: datetime | None = None,
) -> Mail:  # fmt: skip
    """A mail that says it answers these: sends, or messages by a provider's id."""
    return Mail(
        message_id=message_id or str(uuid4()),
        sender=sender,
        recipients=[to],
        names=[Name(one, None) if isinstance(one, UUID) else Name(None, one) for one in names],
        written_at=written,
        automatic=automatic,
        subject="Re: Your receipt",
        text=text,
    )


def hear(factory: Factory, *mails: Mail) -> list[UUID]:
    """The sends that gained a reply by these mails, told in one request."""
    return keep(
        factory.connection, factory.vault, workspace_id=factory.workspace, account_id=factory.account, mails=mails,
        received_at=RECEIVED,
    ).answered  # fmt: skip


def replies(factory: Factory, send: UUID) -> list[MailReply]:
    found = read_trace(factory.connection, factory.workspace, send)
    assert found is not None
    return found.replies


def aside(factory: Factory) -> dict[str, int]:
    return {one.reason: one.number for one in read_set_aside(factory.connection, factory.account)}


# ── which send ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_address_made_for_a_send_goes_before_what_the_headers_name(factory: Factory) -> None:
    send, other = factory.accepted(), factory.accepted(message_id="m-2")
    to = factory.vault.reply_address(send, "reply.shop.example")
    assert hear(factory, mail(other, to=to.upper())) == [send]
    assert [(reply.matched_by, reply.own_address, reply.sender) for reply in replies(factory, send)] == [
        ("address", True, "a•••@example.com")
    ]
    assert replies(factory, other) == []


def test_of_the_messages_that_the_headers_name_the_first_that_is_known_counts(factory: Factory) -> None:
    send, other = factory.accepted(message_id="m-1"), factory.accepted(message_id="m-2")
    assert hear(factory, mail(uuid4(), "unheard-of", "m-2", send)) == [other]
    assert [reply.matched_by for reply in replies(factory, other)] == ["message_id"]


def test_a_providers_second_id_of_a_send_finds_it_too(factory: Factory) -> None:
    send = factory.accepted(message_id="m-1")
    factory.add("second_message_ids", send_id=send, account_id=factory.account, provider_message_id="m-1b")
    assert hear(factory, mail("m-1b")) == [send]


def test_a_name_that_several_messages_share_is_that_of_the_one_that_went_to_whoever_answers(factory: Factory) -> None:
    """Some providers give one Message-ID to a whole call: with our id behind it, or the same for all."""
    people = ["ada@example.com", "bob@example.com", "cora@example.com"]
    shared = [factory.accepted(address=one, recipient=one[:3], message_id=f"call@x/{one[:3]}") for one in people]
    same = [factory.accepted(address=one, recipient=one[:3], message_id="all@x") for one in people[:2]]
    assert hear(factory, mail("call@x", sender=people[1]), mail("all@x", sender=people[0])) == sorted(
        [shared[1], same[0]]
    )
    assert hear(factory, mail("call@x", sender="eve@example.com"), mail("all@x", sender=people[2])) == []
    lone = factory.accepted(address=people[0], recipient="lone", message_id="lonely@x/lone")
    assert hear(factory, mail("lonely@x", sender="eve@example.com")) == [], (
        "that it is the only one known proves nothing"
    )
    assert hear(factory, mail("lonely@x", sender=people[0])) == [lone]
    assert hear(factory, mail("call@x/ada", sender="eve@example.com")) == [shared[0]]


def test_nothing_that_a_stranger_writes_gets_into_the_trace_of_another_workspace(factory: Factory) -> None:
    other = Factory(factory.connection)
    send = other.accepted(message_id="m-theirs")
    other.add("second_message_ids", send_id=send, account_id=other.account, provider_message_id="m-theirs-2")
    to = factory.vault.reply_address(send, "reply.shop.example")  # even with a good token
    assert hear(factory, mail(send, "m-theirs", "m-theirs-2", to=to)) == []
    assert replies(other, send) == []
    assert aside(factory) == {"it answers no email of this workspace": 1}
    assert aside(other) == {}


def test_a_reply_address_that_was_guessed_or_damaged_is_nobodys() -> None:
    send, key = uuid4(), b"k" * 32
    good = reply_address(send, "reply.shop.example", key)
    assert len(good.partition("@")[0]) <= 64, "what a local part may have"
    assert send_of_reply_address(good.upper(), [b"x" * 32, key]) == send
    bad = [
        reply_address(send, "reply.shop.example", b"x" * 32), good.replace("reply+", "reply"), good[:20] + good[21:],
        f"reply+{good[7:8] * 42}@reply.shop.example", f"x{good}", f"{good}\0", "reply+@", "", "a@b",
    ]  # fmt: skip
    assert [send_of_reply_address(one, [key]) for one in bad] == [None] * len(bad)
    for place in range(6, 48):
        other = "a" if good[place] != "a" else "b"
        assert send_of_reply_address(good[:place] + other + good[place + 1 :], [key]) in (None, send)
    assert send_of_reply_address(good[:30] + ("a" if good[30] != "a" else "b") + good[31:], [key]) is None


# ── once, and not too many ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_mail_that_is_told_again_is_one_reply(factory: Factory) -> None:
    send = factory.accepted()
    first, nameless = mail(send, message_id="r-1"), mail(send, text="no id of its own")
    nameless = replace(nameless, message_id=None)
    assert hear(factory, first, first, nameless) == [send, send]
    assert hear(factory, first) == []
    assert hear(factory, nameless) == []
    assert len(replies(factory, send)) == 2
    row = factory.connection.execute("select sum(repeats) from sendonce.mail_replies").fetchone()
    assert row == (2,)


def test_two_machines_that_answer_each_other_for_ever_fill_nothing(factory: Factory) -> None:
    send = factory.accepted()
    for _ in range(MOST + 5):
        hear(factory, mail(send, automatic=True))
    assert len(replies(factory, send)) == MOST
    assert aside(factory) == {f"the email that it answers has {MOST} replies already": 5}


def test_what_answers_nothing_is_bare_and_goes_after_a_week(factory: Factory) -> None:
    send = factory.accepted()
    factory.connection.execute("update sendonce.workspaces set keep_replies = true")
    hear(factory, mail(text="who knows"), mail(send, text="kept"))
    set_aside(
        factory.connection, workspace_id=factory.workspace, account_id=factory.account, content=b"\xff",
        reason="malformed: \0 \ud800", received_at=RECEIVED,
    )  # fmt: skip
    rows = factory.connection.execute("select sender, content from sendonce.mail_replies where send_id is null")
    assert rows.fetchall() == [(None, None)] * 2
    assert mail_replies.forget(factory.connection, RECEIVED + SET_ASIDE_FOR - timedelta(minutes=1)) == 0
    assert mail_replies.forget(factory.connection, RECEIVED + SET_ASIDE_FOR + timedelta(minutes=1)) == 2
    assert aside(factory) == {}
    assert len(replies(factory, send)) == 1


# ── what is kept of it ───────────────────────────────────────────────────────────────────────────────────────────────


def test_what_it_says_is_kept_encrypted_and_only_where_the_workspace_asks_for_it(factory: Factory) -> None:
    send = factory.accepted()
    hear(factory, mail(send, text="first"))
    mail_replies.set_keep_replies(factory.connection, factory.workspace, keep=True)
    hear(factory, mail(send, text="sec\N{SNOWMAN}nd"))
    plain = {}
    for reply in replies(factory, send):
        content = read_content(factory.connection, factory.vault, send_id=send, reply=reply.id)
        assert content is not None
        plain[content.text] = (content.kept, content.sender, content.subject)
    assert plain == {None: (False, None, ""), "sec\N{SNOWMAN}nd": (True, ADDRESS, "Re: Your receipt")}
    assert read_content(factory.connection, factory.vault, send_id=uuid4(), reply=replies(factory, send)[0].id) is None
    stored = factory.connection.execute("select id, content from sendonce.mail_replies where content is not null")
    ((number, sealed),) = stored.fetchall()
    assert b"Your receipt" not in sealed
    with pytest.raises(Unreadable):
        read_content(factory.connection, Vault([("k2", b"z" * 32)]), send_id=send, reply=number)


def test_retention_leaves_only_that_an_answer_came_and_a_later_one_brings_nothing_personal(factory: Factory) -> None:
    factory.connection.execute("update sendonce.workspaces set keep_replies = true")
    factory.connection.execute("update sendonce.mailstreams set retain_for = '1 day'")
    send = factory.accepted()
    hear(factory, mail(send, text="words"))
    assert strip(factory.connection, factory.vault) == 1
    hear(factory, mail(send, text="more words"))
    rows = factory.connection.execute("select sender, content, own_address, matched_by from sendonce.mail_replies")
    assert rows.fetchall() == [(None, None, None, "message_id")] * 2
    found = read_trace(factory.connection, factory.workspace, send)
    assert found is not None
    assert [(entry.what, entry.count) for entry in timeline(found) if entry.lane == "reply"] == [("Answered", 2)]


def test_a_mail_has_the_time_that_it_tells_where_that_can_be(factory: Factory) -> None:
    send = factory.accepted()
    hours = timedelta(hours=2)
    told = [RECEIVED - hours, RECEIVED + hours, RECEIVED - timedelta(days=30), None, datetime.min.replace(tzinfo=UTC)]
    hear(factory, *(mail(send, written=one) for one in told))
    assert sorted(reply.at for reply in replies(factory, send)) == [RECEIVED - hours, *[RECEIVED] * 4]


# ── what follows from it ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reply_moves_nothing_and_whoever_decides_has_to_have_seen_it(factory: Factory) -> None:
    send = factory.held()
    hear(factory, mail(send), mail(send, automatic=True))
    found = read_trace(factory.connection, factory.workspace, send)
    assert found is not None
    assert found.work is not None
    assert (found.state, found.work.evidence) == ("held", 2)


@pytest.mark.parametrize(
    ("by_address", "own", "automatic", "delivered", "sureness"),
    [
        (True, True, False, False, Sureness.PROVED),
        (False, True, False, True, Sureness.PROVED),
        (False, True, False, False, Sureness.LIKELY),
        (True, False, False, False, None),
        (True, True, True, False, None),
    ],
)
def test_an_answer_of_a_person_from_the_recipients_address_shows_that_it_arrived(
    factory: Factory, by_address: bool, own: bool, automatic: bool, delivered: bool, sureness: Sureness | None
) -> None:  # fmt: skip
    send = factory.accepted()
    if delivered:
        factory.event(send, "delivered", occurred=4)
        factory.delivery(send, "delivered", when=4)
    to = factory.vault.reply_address(send, "reply.shop.example") if by_address else "shop@example.com"
    hear(factory, mail(send, to=to, sender=ADDRESS if own else "eve@example.net", automatic=automatic))
    found = read_trace(factory.connection, factory.workspace, send)
    assert found is not None
    judged = verdict(found, database_now(factory.connection))
    if sureness is None:
        assert judged.cause is not Cause.REPLIED_TO
        return
    assert (judged.cause, judged.sureness) == (Cause.REPLIED_TO, sureness)
    assert "answered from the recipient's address" in judged.sentence


# ── where the address is put in ──────────────────────────────────────────────────────────────────────────────────────


def request(factory: Factory, key: str = "receipt:1", **message: object) -> dict[str, object]:
    return {
        "mailstream": factory.mailstream, "key": key, "recipient": {"id": "r", "address": ADDRESS},
        "trigger": {"type": "order.paid", "id": "evt_1"},
        "message": {"from": "shop@example.com", "subject": "Your receipt", "text": "Thank you", **message},
    }  # fmt: skip


def recorded(factory: Factory, raw: dict[str, object]) -> tuple[UUID, Verdict]:
    read = read_request(raw, workspace_id=factory.workspace, source="api", asked_at=at(0))
    (one,) = record(factory.connection, factory.vault, [read])
    return one.send_id, one.verdict


def reply_to(factory: Factory, send: UUID) -> str | None:
    found = read_message(factory.connection, factory.vault, send)
    assert found is not None
    return found.reply_to


def test_a_message_without_a_reply_to_is_frozen_with_the_address_of_its_send(factory: Factory) -> None:
    factory.connection.execute("update sendonce.mailstreams set reply_domain = 'reply.shop.example'")
    send, _ = recorded(factory, request(factory))
    made = factory.vault.reply_address(send, "reply.shop.example")
    assert reply_to(factory, send) == made
    # Whatever is changed before the next attempt, its bytes stay; and what is asked for again is no other content.
    factory.connection.execute("update sendonce.mailstreams set reply_domain = 'other.example'")
    factory.vault = Vault([("k2", b"z" * 32), ("k1", b"k" * 32)])
    assert recorded(factory, request(factory)) == (send, Verdict.IN_PROGRESS)
    assert reply_to(factory, send) == made
    assert factory.vault.send_of_reply_address(made) == send, "also after a rotation"


def test_a_message_keeps_a_reply_to_of_its_own_and_gets_none_where_no_domain_is_set(factory: Factory) -> None:
    without, _ = recorded(factory, request(factory))
    factory.connection.execute("update sendonce.mailstreams set reply_domain = 'reply.shop.example'")
    own, _ = recorded(factory, request(factory, "receipt:2", reply_to="Shop <help@example.com>"))
    assert (reply_to(factory, without), reply_to(factory, own)) == (None, "Shop <help@example.com>")


@pytest.mark.parametrize(
    "domain", ["", "shop", "re ply.example", "x@reply.example", "reply.example\n", "Reply.Example"]
)
def test_a_reply_domain_is_a_domain(domain: str) -> None:
    from dataclasses import replace

    rules = replace(rules_for(MailClass.LIFECYCLE, None), reply_domain=domain)
    with pytest.raises(BadStream, match="reply domain"):
        check_rules(rules, key_window=None, settling_time=None)
