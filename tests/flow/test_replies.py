"""Somebody answers: the real worker has the mail accepted, its recipient answers it by the provider that takes in mail,
over real sockets, and the answer stands on the trace (issue: replies keep their context)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest

from dashboard.insight.folding import Entry, Lane
from dashboard.insight.judging import Cause, Sureness
from dashboard.insight.timeline import timeline
from dashboard.insight.verdict import verdict
from dashboard.ledger.database import database_now
from dashboard.ledger.mail_replies import read_content
from dashboard.ledger.trace import Trace, read_trace
from dashboard.simulator import Config, Simulator
from tests.crew import violations
from tests.flow.test_every_provider import NEVER, Desk
from tests.place import Place
from tests.providers.dialects import PLAYED, Played

PASSWORD = "shop:a-long-random-one"


@dataclass(frozen=True)
class Inbox:
    """How the mail of an account comes in."""

    provider: str
    settings: dict[str, str]
    """What it is verified by, beside what events are verified by."""
    credentials: str = ""
    """What stands before the host in its address."""


INBOXES = (
    Inbox("postmark", {"webhook_secret": PASSWORD}, f"{PASSWORD}@"),
    Inbox("sendgrid", {"reply_secret": PASSWORD}, f"{PASSWORD}@"),
    Inbox("mailgun", {}),
    Inbox("ses", {}),
)


def played(inbox: Inbox) -> Played:
    return next(one for one in PLAYED if one.name == inbox.provider)


@dataclass
class Office:
    """A desk whose provider hands in mail as well."""

    desk: Desk
    inbox: Inbox

    def trace(self, send: UUID) -> Trace:
        with self.desk.place.database.snapshot() as connection:
            found = read_trace(connection, self.desk.place.workspace, send)
        assert found is not None
        return found

    def heard(self, send: UUID) -> list[Entry]:
        """What the trace says of answers, but for when."""
        return [entry for entry in timeline(self.trace(send)) if entry.lane == Lane.REPLY]

    def aside(self) -> list[str]:
        """Why mails answered nothing."""
        rows = self.desk.place.all("select reason from sendonce.mail_replies where send_id is null order by id")
        return [row["reason"] for row in rows]

    def told(self, send: UUID) -> list[str]:
        """What the replies of a send say, as far as it is kept."""
        with self.desk.place.database.snapshot() as connection:
            found = [
                read_content(connection, self.desk.place.vault, send_id=send, reply=reply.id)
                for reply in self.trace(send).replies
            ]
        return [one.text or "" for one in found if one is not None]


@pytest.fixture(params=INBOXES, ids=lambda inbox: inbox.provider)
def office(place: Place, request: pytest.FixtureRequest) -> Iterator[Office]:
    """Its receipts take replies at a domain of their own."""
    inbox: Inbox = request.param
    one = played(inbox)
    with Simulator(Config(dialect=one.name, api_key=one.api_key, look_up_delay_ms=NEVER)) as simulator:
        desk = Desk(place, one, simulator, place.account)
        desk.tell(**inbox.settings)
        place.run("update sendonce.mailstreams set reply_domain = 'reply.shop.example' where name = 'receipts'")
        yield Office(desk, inbox)
    assert violations(place) == []


def test_what_a_recipient_answers_stands_on_the_trace_of_the_email_that_they_answer(office: Office) -> None:
    desk, simulator = office.desk, office.desk.simulator
    with desk.web() as url, desk.worker():
        desk.tell(**office.inbox.settings)
        host = url.removeprefix("http://")
        simulator.configure(webhooks={"replies_url": f"http://{office.inbox.credentials}{host}/replies"})
        sends = desk.ask("ada", "bob")
        desk.become(sends, dict.fromkeys(sends, "accepted"))
        ada, bob = sends["ada"], sends["bob"]

        first = simulator.answer(ada, text="Wrong colour, please.")
        assert [simulator.hand_in(first) for _ in range(3)] == [200, 200, 200], "the provider may tell it again"
        (entry,) = office.heard(ada)
        assert (entry.what, entry.who) == ("Answered from the recipient's address", "a•••@example.test")
        assert entry.detail == "to the address made for this email"
        assert desk.place.one("select repeats from sendonce.mail_replies")["repeats"] == 2
        assert office.heard(bob) == []

        with desk.place.database.snapshot() as connection:
            judged = verdict(office.trace(ada), database_now(connection))
        assert (judged.cause, judged.sureness) == (Cause.REPLIED_TO, Sureness.PROVED)
        assert entry.evidence in judged.proof

        # Their program writes to the sender, as some do, and still names the message.
        assert simulator.reply(bob, to="shop@example.test") == 200
        assert [entry.detail for entry in office.heard(bob)] == ["names this email's Message-ID"]
        assert simulator.reply(bob, automatic=True) == 200
        assert simulator.reply(bob, sender="eve@elsewhere.example") == 200
        assert [(entry.what, entry.who) for entry in office.heard(bob)] == [
            ("Answered from the recipient's address", "b•••@example.test"),
            ("An automatic reply came from the recipient's address", "b•••@example.test"),
            ("Answered from another address", "e•••@elsewhere.example"),
        ]

        # Nothing of what they say is kept before the workspace asks for it.
        assert office.told(ada) == [""]
        desk.place.run("update sendonce.workspaces set keep_replies = true")
        assert simulator.reply(ada, text="And a larger one.") == 200
        assert office.told(ada)[1].startswith("And a larger one.")
        stored = desk.place.one("select content from sendonce.mail_replies where content is not null")["content"]
        assert b"larger" not in stored

        # What answers nothing, or nothing of ours, is taken and set aside.
        assert simulator.reply(ada, to="shop@example.test", threaded=False) == 200
        stranger = {"In-Reply-To": f"<{uuid4()}@example.test>", "References": "<a@b> <c@d>"}
        assert simulator.reply(ada, to="shop@example.test", headers=stranger) == 200
        assert office.aside() == ["it answers no email of this workspace"] * 2

        # Somebody who does not have what the provider has is nobody.
        before = desk.place.count("mail_replies")
        simulator.configure(webhooks={"replies_url": f"http://{host}/replies", "secret": "another secret of another"})
        if office.inbox.provider != "ses":  # whose topic signs with its own key, whatever the secret
            assert simulator.reply(ada) == 401
        forged = simulator.answer(ada)
        assert simulator.hand_in(forged._replace(headers={}, body=forged.body.replace(b"a", b"b"))) == 401
        assert desk.place.count("mail_replies") == before
