"""Random mixed histories: the engine never contradicts what the simulator's books hold, and does not guess.

Everybody's history is drawn from a seed of their own. They are all played side by side, by one worker, and then each
of them complains in every way about everything they have.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from dashboard.insight.case import Answer, Case, Complaint, Finding, least_copies, most_copies
from dashboard.insight.complaints import investigate
from dashboard.insight.judging import Sureness
from dashboard.ledger import holds
from dashboard.lifecycle import Decision
from tests.complaints.desk import Desk, Person, a_desk
from tests.conftest import SOAK
from tests.crew import HOUR
from tests.factories import own_database

HISTORIES = 200 if SOAK else 36
SEED = 20261201

FARES = (
    "ana", "quiet", "lost", "lost-quiet", "reset", "reset-quiet", "error", "error-quiet", "garbage", "garbage-quiet",
    "reject", "bounce", "softbounce", "complain", "delay", "failed", "suppressed", "double", "open",
)  # fmt: skip
"""What the simulator does with somebody's mail (``simulator/recipients.py``)."""

STREAMS = {
    "keyed-release": {"policy": "release"},
    "keyed-hold": {"policy": "hold"},
    "keyless-hold": {"policy": "hold", "keys": False},
    "keyless-cancel": {"policy": "cancel", "keys": False, "mail_class": "security"},
    "keyless-bulk": {"policy": "hold", "keys": False, "mail_class": "lifecycle"},
}


@dataclass
class Email:
    """One that a business asked for: what the recipient would see of it."""

    send: UUID
    content: str
    trigger: str


@dataclass
class Life:
    """Somebody's history."""

    dice: random.Random
    who: Person
    emails: list[Email] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    strays: int = 0


class Play:
    """All histories at once, step by step."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        for name, how in STREAMS.items():
            desk.scene.mailstream(name, **{"mail_class": "transactional", "grace": HOUR, "owner": name} | how)  # type: ignore[arg-type]
        self.lives = []
        for number in range(HISTORIES):
            dice = random.Random(f"{SEED} {number}")
            self.lives.append(Life(dice, desk.person(dice.choice(FARES))))

    def run(self) -> None:
        """Three rounds: asking, then what follows when time has passed."""
        for _ in range(3):
            for life in self.lives:
                self._ask(life)
            for life in self.lives:
                self._interfere(life)
            self.desk.dispatch()
            self.desk.hear()
            self._time_passes()
            self.desk.dispatch()
            self.desk.hear()
        for life in self.lives[::7]:
            self._ask(life, relayed=False)

    def _ask(self, life: Life, *, relayed: bool = True) -> None:
        """Something new, something that overlaps, or the same key again with this or other content."""
        dice = life.dice
        for _ in range(dice.choice((0, 1, 1, 2))):
            how = dice.choice(("new", "new", "again", "other content", "second key", "second stream"))
            if how == "new" or not life.asked:
                number = f"{life.who.id}-{len(life.asked)}"
                asked = {"key": f"k:{number}", "trigger": f"t:{number}", "text": f"text {number}"}
                asked["stream"] = dice.choice(list(STREAMS))
            else:
                asked = dict(dice.choice(life.asked))
                asked["trigger"] += "+"
                match how:
                    case "other content":
                        asked["text"] += "+"
                    case "second key":
                        asked["key"] += "+"
                    case "second stream":
                        asked["stream"] = dice.choice(list(STREAMS))
            send = self.desk.ask(life.who, **asked)  # type: ignore[arg-type]
            if relayed:
                self.desk.relay()  # one by one: of two that are relayed at once, either may come first
            if send not in {email.send for email in life.emails}:
                life.emails.append(Email(send, asked["text"], asked["trigger"]))
                life.asked.append(asked)

    def _interfere(self, life: Life) -> None:
        """Somebody cancels something; another program sends something."""
        if life.emails and life.dice.random() < 0.1:
            self.desk.cancel(life.dice.choice(life.emails).send)
        if life.dice.random() < 0.2 and life.who.address.startswith(("ana", "open", "double", "complain", "bounce")):
            self.desk.beside(life.who)
            life.strays += 1

    def _time_passes(self) -> None:
        """Grace periods end; people decide some of what is held."""
        sends = [email.send for life in self.lives for email in life.emails]
        self.desk.grace_ends(*sends)
        with self.desk.place.database.transaction() as connection:
            held = {hold.send_id for hold in holds.open_holds(connection, self.desk.place.workspace, limit=10_000)}
        choices = (Decision.RESEND, Decision.MARK_ACCEPTED, Decision.CANCEL, None)
        for life in self.lives:
            for email in life.emails:
                choice = life.dice.choice(choices)
                if email.send in held and choice is not None:
                    self.desk.decide(email.send, choice)


@pytest.fixture(scope="module")
def play(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    """All histories, played to their end."""
    with (
        own_database(server_url, template_database) as url,
        a_desk(url, tmp_path_factory.mktemp("histories")) as desk,
    ):
        played = Play(desk)
        played.run()
        yield played


TAKEN = {
    Finding.DELIVERED, Finding.BOUNCED, Finding.COMPLAINED, Finding.DEFERRED, Finding.SILENT, Finding.TAKEN,
    Finding.REFUSED_AFTER_TAKING, Finding.ONE_COPY, Finding.DELIVERED_TWICE, Finding.BESIDE_SENDONCE, Finding.ON_TIME,
    Finding.ASKED_LATE, Finding.WAITED_IN_OUTBOX, Finding.WAITED_FOR_WORKER, Finding.PROVIDER_WAS_SLOW,
    Finding.WAS_UNKNOWN, Finding.WAS_HELD, Finding.WAS_DEFERRED, Finding.PASSED_ON_LATE, Finding.BEFORE_OPT_OUT,
    Finding.OPT_OUT_HEARD_LATE, Finding.EXEMPT, Finding.NO_OPT_OUT, Finding.CANCEL_TOO_LATE,
    Finding.TAKEN_THOUGH_STOPPED, Finding.SAME_CONTENT_TWO_KEYS, Finding.SAME_CONTENT_TWO_STREAMS,
    Finding.TWO_REVISIONS, Finding.TWO_OCCURRENCES,
}  # fmt: skip
"""Whoever says one of these says that a provider took it."""

NOT_TAKEN = {
    Finding.FAILED, Finding.SUPPRESSED, Finding.CANCELLED, Finding.HELD, Finding.PAUSED, Finding.BACKLOG,
    Finding.WAITS_TO_RETRY, Finding.SCHEDULED, Finding.NO_COPY, Finding.NOT_BY_US, Finding.STILL_ON_ITS_WAY,
}  # fmt: skip
"""Whoever says one of these, and that it is proved, says that no provider took it."""

NO_COPY_OF_IT = {
    Finding.FAILED, Finding.SUPPRESSED, Finding.CANCELLED, Finding.NO_COPY, Finding.NOT_BY_US,
    Finding.STILL_ON_ITS_WAY,
}  # fmt: skip
"""And of these, that the customer has nothing of the kind from here, whatever the key."""


def test_no_answer_contradicts_the_books(play: Play) -> None:
    """Each history is asked about by every complaint, by person, by address, and by each of its emails."""
    books = Counter(row.send_id for row in play.desk.scene.simulator.books)
    said: Counter[tuple[Finding, Sureness]] = Counter()
    for life in play.lives:
        names = {life.who.id, life.who.address, *(email.trigger for email in life.emails)}
        names |= {str(email.send) for email in life.emails}
        for name in sorted(names):
            evidence = play.desk.evidence(name)
            for complaint in Complaint:
                case = Case(complaint, evidence, evidence.now)
                answer = investigate(case)
                said[answer.finding, answer.sureness] += 1
                wrong = contradiction(case, answer, books, life)
                assert wrong is None, f"{life.who} {complaint} {name}: {wrong}\n{answer}"
    assert len({finding for finding, _ in said}) > 25, "the histories are mixed"
    assert sum(count for (_, sureness), count in said.items() if sureness is Sureness.CANNOT_TELL) > HISTORIES
    assert {Sureness.PROVED, Sureness.LIKELY, Sureness.CANNOT_TELL} == {sureness for _, sureness in said}


def contradiction(case: Case, answer: Answer, books: Counter[str | None], life: Life) -> str | None:
    """What of an answer is not so, by the books; None where nothing is."""
    taken = {trace.send.id: books[str(trace.send.id)] for trace in case.evidence.traces}
    for trace in case.evidence.traces:
        if not least_copies(trace) <= taken[trace.send.id] <= most_copies(trace):
            return f"{taken[trace.send.id]} copies, not {least_copies(trace)} to {most_copies(trace)}, of {trace.send}"
    about = answer.about
    proved = answer.sureness is Sureness.PROVED
    named = {trace.send.id for trace in case.evidence.named}
    if answer.finding in TAKEN and about and not taken[about]:
        return "it was not taken"
    if answer.finding in NOT_TAKEN and proved and about and taken[about]:
        return "it was taken"
    if answer.finding in NO_COPY_OF_IT and proved and about and _copies(life, about, taken):
        return "the same left under another key"
    match answer.finding:
        case Finding.ACCEPTED_MORE_THAN_ONCE if about and taken[about] < 2:
            return "it was taken once at most"
        case Finding.ONE_COPY if proved and _copies(life, about, taken) != 1:
            return "there is another copy"
        case Finding.ONE_AT_MOST if about and taken[about] > 1:
            return "there are two"
        case Finding.SAME_CONTENT_TWO_KEYS | Finding.SAME_CONTENT_TWO_STREAMS:
            pair = {proof.send for proof in answer.proof}
            if len({email.content for email in life.emails if email.send in pair}) != 1 or len(pair) != 2:
                return "they are not the same"
            if not all(taken[send] for send in pair if send):
                return "one of them was not taken"
        case Finding.NO_COPY if proved and any(taken[send] for send in named):
            return "there is a copy"
        case Finding.NOT_BY_US | Finding.BESIDE_SENDONCE if not proved and not life.strays:
            return "nothing else was sent"
        case Finding.NEVER_TRIGGERED if any(str(email.send) for email in life.emails if email.send in named):
            return "it was triggered"
        case Finding.DELIVERED if proved and "quiet" in life.who.address:
            return "nobody told of a delivery"
    trace = next((trace for trace in case.evidence.traces if trace.send.id == about), None)
    if proved and trace and least_copies(trace) < most_copies(trace):
        if answer.finding in (Finding.ONE_COPY, Finding.NO_COPY):
            return "how many copies there are is not known"
        if not least_copies(trace):
            return "whether it was taken is not known"
    return None


def _copies(life: Life, about: UUID | None, taken: dict[UUID, int]) -> int:
    """How many copies of what the recipient sees in this email there are."""
    content = {email.content for email in life.emails if email.send == about}
    return sum(taken.get(email.send, 0) for email in life.emails if email.content in content)
