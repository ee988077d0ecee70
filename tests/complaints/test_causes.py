"""Every cause of every complaint: played by the real worker and the simulator, then asked for.

A situation is a function that plays it and says who complains; its decorator says what must be found, how sure, and
which kinds of rows must prove it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from dashboard.insight.case import Complaint, Finding
from dashboard.insight.judging import Sureness
from dashboard.insight.replies import REPLIES, reply
from dashboard.insight.told import document, facts
from dashboard.ledger import suppressions
from dashboard.ledger.accounts import pause_account
from dashboard.ledger.cancelling import Remembered
from dashboard.ledger.database import database_now
from dashboard.ledger.mail_replies import Mail, Name, keep
from dashboard.ledger.replay import replay_send
from dashboard.ledger.streams import pause_by_person
from dashboard.ledger.suppressions import Statement
from dashboard.ledger.tables import SuppressionScope
from dashboard.ledger.trace import read_address
from dashboard.lifecycle import Decision
from dashboard.producer import InProgress, Ledger, send_once
from dashboard.providers.base import Rejected
from tests.complaints.desk import Desk, Person, nobody, now
from tests.crew import HOUR, Hand, person
from tests.place import Place
from tests.scenarios.scene import event

PROVED, LIKELY, CANNOT_TELL = Sureness.PROVED, Sureness.LIKELY, Sureness.CANNOT_TELL
MINUTE = timedelta(minutes=1)


@dataclass
class Played:
    """Who complains, how it is asked, and the sends whose rows must prove the answer."""

    who: str
    sends: list[UUID] = field(default_factory=list)
    how: dict[str, Any] = field(default_factory=dict)
    words: str = ""


@dataclass(frozen=True)
class Situation:
    """What must be found. ``rows``: the kinds of rows that must be among the proof."""

    play: Callable[[Desk], Iterator[Played]]
    complaint: Complaint
    finding: Finding
    sureness: Sureness
    rows: tuple[str, ...]


SITUATIONS: list[Situation] = []


def found(
    finding: Finding, sureness: Sureness = PROVED, *rows: str, complaint: Complaint | None = None
) -> Callable[[Callable[[Desk], Iterator[Played]]], Callable[[Desk], Iterator[Played]]]:
    """This must be found where the situation was played: a generator, so that what it holds open stays open."""

    def keep(play: Callable[[Desk], Iterator[Played]]) -> Callable[[Desk], Iterator[Played]]:
        said = complaint or Complaint(play.__name__.split("_")[0])
        SITUATIONS.append(Situation(play, said, finding, sureness, rows))
        return play

    return keep


# ── twice ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@found(Finding.ONE_COPY, PROVED, "attempt 1", "duplicate")
def twice_though_it_was_asked_for_three_times(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada, key=f"receipt:{ada.id}", trigger=f"evt:{ada.id}")
    desk.go()
    for n in range(2):
        desk.ask(ada, key=f"receipt:{ada.id}", trigger=f"again-{n}:{ada.id}")
    desk.go()
    yield Played(f"evt:{ada.id}", [send], words="asked for 2 more times, which made no second one")


def _held_without_an_answer(desk: Desk, words: str) -> UUID:
    """A provider that forgets keys took it, and its answer was lost."""
    send = desk.ask(desk.person(words), stream=desk.stream(keys=False))
    desk.relay()
    desk.dispatch()
    desk.grace_ends(send)
    return send


@found(Finding.ACCEPTED_MORE_THAN_ONCE, PROVED, "attempt 1", "attempt 2")
def twice_because_a_person_had_it_submitted_again(desk: Desk) -> Iterator[Played]:
    with desk.silence():
        send = _held_without_an_answer(desk, "lost")
        desk.decide(send, Decision.RESEND)
        desk.dispatch()
    yield Played(str(send), [send], words="Ada allowed the further attempt")


@found(Finding.MAY_BE_TWO, CANNOT_TELL, "attempt 1", "attempt 2")
def twice_perhaps_because_a_person_had_it_submitted_again(desk: Desk) -> Iterator[Played]:
    send = _held_without_an_answer(desk, "reset-quiet")
    desk.decide(send, Decision.RESEND)
    desk.go()
    yield Played(str(send), [send], words="one copy left or two")


@found(Finding.ONE_COPY, PROVED, "attempt 2")
def twice_though_the_provider_recognised_the_repeat(desk: Desk) -> Iterator[Played]:
    ada = desk.person("lost-quiet")
    send = desk.ask(ada, stream=desk.stream(policy="release", grace=MINUTE))
    desk.go()
    desk.grace_ends(send)
    desk.go()
    assert desk.copies(send) == 1
    yield Played(ada.id, [send])


@found(Finding.SAME_CONTENT_TWO_KEYS, PROVED, "attempt 1")
def twice_because_two_triggers_overlap(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    one = desk.ask(ada, trigger=f"order:{ada.id}", trigger_type="order.paid")
    two = desk.ask(ada, trigger=f"invoice:{ada.id}", trigger_type="invoice.paid")
    desk.go()
    yield Played(f"order:{ada.id}", [one, two], words=f"order.paid order:{ada.id} and invoice.paid invoice:{ada.id}")


@found(Finding.SAME_CONTENT_TWO_STREAMS, PROVED, "attempt 1")
def twice_because_two_teams_send_the_same(desk: Desk) -> Iterator[Played]:
    ada, other = desk.person(), desk.stream()
    sends = [desk.ask(ada), desk.ask(ada, stream=other)]
    desk.go()
    yield Played(ada.address, sends, words="receipts (Payments) at")


@found(Finding.SAME_CONTENT_TWO_STREAMS, PROVED, "attempt 1")
def twice_because_two_workspaces_send_the_same(desk: Desk) -> Iterator[Played]:
    ada, other = desk.person(), Place(desk.place.database, vault=desk.place.vault, name=f"shop-{uuid4().hex[:8]}")
    desk.scene.mailstream("receipts", place=other)
    sends = [desk.ask(ada), desk.ask(ada, place=other)]
    desk.go()
    alone, _ = desk.answer(Complaint.TWICE, ada.id)
    assert [trace.send.id for trace in alone.evidence.traces] == sends[:1], "whoever may not see the other does not"
    yield Played(ada.id, sends, {"also": [other.workspace]}, words=f"of the workspaces default and {other.name}")


@found(Finding.MAY_BE_TWO, CANNOT_TELL, "attempt 1")
def twice_perhaps_because_two_triggers_overlap_and_one_call_got_no_answer(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    one = desk.ask(ada)
    desk.go()
    grumbler = Person(ada.id, f"reset-quiet+{ada.id}@example.test")
    two = desk.ask(grumbler, stream=desk.stream(keys=False))
    desk.go()
    yield Played(ada.id, [one, two], words="it is not known whether a provider took both")


@found(Finding.DELIVERED_TWICE, LIKELY, "attempt 1", "event")
def twice_because_the_provider_delivered_it_twice(desk: Desk) -> Iterator[Played]:
    ada = desk.person("double")
    send = desk.ask(ada)
    desk.go()
    yield Played(ada.id, [send], words="tells of two deliveries of that one message")


@found(Finding.BESIDE_SENDONCE, LIKELY, "attempt 1", "unmatched event")
def twice_because_another_program_sends_too(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada)
    desk.go()
    desk.beside(ada)
    yield Played(str(send), [send], words="did not go through Sendonce")


@found(Finding.TWO_REVISIONS, LIKELY, "attempt 1")
def twice_in_two_versions(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    sends = [desk.ask(ada, trigger=f"o:{ada.id}", text=text) for text in ("one item", "two items")]
    desk.go()
    yield Played(f"o:{ada.id}", sends)


@found(Finding.TWO_OCCURRENCES, LIKELY, "attempt 1")
def twice_because_two_things_happened(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    sends = [desk.ask(ada, text=text) for text in ("order one", "order two")]
    desk.go()
    yield Played(ada.address, sends)


@found(Finding.ONE_MESSAGE_COPIED, PROVED, "attempt 1")
def twice_with_one_message_id(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada)
    desk.go()
    yield Played(ada.id, [send], {"message_ids": (f"{send}@example.test", f"{send}@example.test")})


@found(Finding.DELIVERED_TWICE, LIKELY, "attempt 1", "event")
def twice_with_one_message_id_because_the_provider_delivered_it_twice(desk: Desk) -> Iterator[Played]:
    ada = desk.person("double")
    send = desk.ask(ada)
    desk.go()
    yield Played(ada.id, [send], {"message_ids": (f"{send}@example.test", f"{send}@example.test")})


@found(Finding.BESIDE_SENDONCE, LIKELY, "attempt 1")
def twice_with_two_message_ids_of_which_one_is_nobodys(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada)
    desk.go()
    ids = (f"{send}@example.test", "something.else@example.test")
    yield Played(ada.id, [send], {"message_ids": ids}, words="the copies carry different Message-IDs")


@found(Finding.ONE_COPY, PROVED, "attempt 1")
def twice_by_a_request_that_failed_and_was_made_again_under_another_key(desk: Desk) -> Iterator[Played]:
    failed, send = _failed_and_asked_for_again(desk)
    yield Played(str(failed), [send])


def _failed_and_asked_for_again(desk: Desk) -> tuple[UUID, UUID]:
    """The provider refused it; then the same content went to the same person under another key."""
    ada = desk.person()
    failed = desk.ask(Person(ada.id, f"reject+{ada.id}@example.test"))
    desk.go()
    send = desk.ask(ada)
    desk.go()
    return failed, send


@found(Finding.ONE_AT_MOST, CANNOT_TELL, "attempt 1")
def twice_though_not_even_one_is_sure(desk: Desk) -> Iterator[Played]:
    ada = desk.person("reset-quiet")
    send = desk.ask(ada, stream=desk.stream(keys=False))
    desk.go()
    yield Played(ada.id, [send])


@found(Finding.NO_COPY, PROVED, "attempt 1")
def twice_though_the_provider_refused_it(desk: Desk) -> Iterator[Played]:
    ada = desk.person("reject")
    send = desk.ask(ada)
    desk.go()
    assert desk.copies(send) == 0
    yield Played(ada.id, [send])


@found(Finding.NOTHING_KNOWN, CANNOT_TELL)
def twice_by_an_order_that_nobody_knows(desk: Desk) -> Iterator[Played]:
    yield Played(nobody())


# ── never: no send came of it ────────────────────────────────────────────────────────────────────────────────────────


@found(Finding.IN_OUTBOX, PROVED, "outbox")
def never_because_no_relay_runs(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    desk.ask(ada)
    yield Played(f" {ada.address.upper()} ", words="it still waits in the outbox")
    desk.go()


@found(Finding.DELIVERED, PROVED, "attempt 1", "event")
def never_while_an_order_whose_number_goes_on_waits(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada, trigger=f"order:{ada.id}:7")
    desk.go()
    desk.ask(desk.person(), key=f"receipt:order:{ada.id}:77", trigger="another")
    yield Played(f"order:{ada.id}:7", [send])
    desk.go()


@found(Finding.IN_OUTBOX, PROVED, "outbox")
def never_because_it_waits_behind_an_order_whose_number_goes_on(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    desk.ask(desk.person(), key=f"receipt:order:{ada.id}:77", trigger="another")
    desk.ask(ada, key=f"receipt:order:{ada.id}:7:v3", trigger="its own")
    yield Played(f"order:{ada.id}:7", words="asked for by order.paid its own")
    desk.go()


@found(Finding.UNREADABLE_REQUEST, PROVED, "dead letter")
def never_because_the_request_was_damaged(desk: Desk) -> Iterator[Played]:
    order = nobody()
    desk.ask(Person("someone", "not an address"), trigger=order)
    desk.relay()
    yield Played(order, words="recipient.address")


@found(Finding.OTHER_CONTENT_REFUSED, PROVED, "duplicate", "attempt 1")
def never_the_version_whose_key_was_used_before(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada, key=f"receipt:{ada.id}", trigger=f"first:{ada.id}", text="one item")
    desk.go()
    desk.ask(ada, key=f"receipt:{ada.id}", trigger=f"second:{ada.id}", text="two items")
    desk.go()
    yield Played(f"second:{ada.id}", [send], words="refused, because its key had been used for other content")


@found(Finding.NEVER_TRIGGERED, PROVED)
def never_because_nothing_asked_for_it(desk: Desk) -> Iterator[Played]:
    yield Played(nobody())


@found(Finding.NEVER_TRIGGERED, LIKELY)
def never_perhaps_because_its_transaction_is_still_open(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    with _business(desk, ada, commits=False):
        yield Played(ada.id, words="a transaction that may hold it is open since")


@found(Finding.NEVER_TRIGGERED, PROVED)
def never_because_its_transaction_was_rolled_back(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    with _business(desk, ada, commits=False):
        pass
    yield Played(ada.id, words="which looks the same from here")


@found(Finding.NOTHING_KNOWN, CANNOT_TELL)
def never_by_a_name_that_nothing_here_goes_by(desk: Desk) -> Iterator[Played]:
    yield Played("Ada Lovelace")


@found(Finding.NEVER_TRIGGERED, LIKELY)
def never_by_what_may_be_the_providers_id_of_it(desk: Desk) -> Iterator[Played]:
    yield Played(str(uuid4()))


@contextmanager
def _business(desk: Desk, who: Person, *, commits: bool) -> Iterator[None]:
    """A transaction of the business, in which an email is asked for."""
    from psycopg import connect
    from psycopg.types.json import Jsonb

    with connect(desk.place.database.url, application_name="shop") as connection:
        asked = {
            "mailstream": "receipts", "key": f"k:{who.id}", "recipient": {"id": who.id, "address": who.address},
            "trigger": {"type": "t", "id": "i"}, "message": {"from": "a@example.test", "subject": "s", "text": "t"},
        }  # fmt: skip
        connection.execute("select sendonce.enqueue(%s)", [Jsonb(asked)])
        yield
        connection.commit() if commits else connection.rollback()


@found(Finding.NOTHING_KNOWN, CANNOT_TELL)
def never_by_a_message_id_that_nobody_knows(desk: Desk) -> Iterator[Played]:
    yield Played("<some.message@example.test>")


@found(Finding.NOTHING_KNOWN, CANNOT_TELL)
def never_before_anything_was_kept_here(desk: Desk) -> Iterator[Played]:
    long_ago = now() - timedelta(days=900)
    yield Played(nobody(), [], {"around": (long_ago, long_ago + HOUR)}, words="only what was asked for since")


@found(Finding.KEY_USED_BEFORE, PROVED, "attempt 1", "duplicate")
def never_because_its_key_had_been_used_long_before(desk: Desk) -> Iterator[Played]:
    ada, send = _asked_for_again_after_days(desk, text="Thank you")
    desk.go()
    yield Played(ada.address, [send], {"around": (now() - HOUR, now())}, words="because its key had been used before")


@found(Finding.KEY_USED_BEFORE, PROVED, "attempt 1", "outbox")
def never_because_its_key_had_been_used_long_before_and_no_relay_runs(desk: Desk) -> Iterator[Played]:
    ada, send = _asked_for_again_after_days(desk, text="Thank you")
    yield Played(ada.address, [send], {"around": (now() - HOUR, now())})
    desk.go()


@found(Finding.OTHER_CONTENT_REFUSED, LIKELY, "attempt 1", "duplicate")
def never_because_its_key_had_been_used_long_before_for_other_content(desk: Desk) -> Iterator[Played]:
    ada, send = _asked_for_again_after_days(desk, text="December")
    desk.go()
    yield Played(ada.address, [send], {"around": (now() - HOUR, now())})


@found(Finding.KEY_USED_BEFORE, PROVED, "attempt 1", "duplicate")
def never_because_its_key_had_been_used_long_before_and_that_one_bounced(desk: Desk) -> Iterator[Played]:
    ada, send = _asked_for_again_after_days(desk, text="Thank you", words="bounce")
    desk.go()
    yield Played(ada.address, [send], {"around": (now() - HOUR, now())}, words="because its key had been used before")


def _asked_for_again_after_days(desk: Desk, *, text: str, words: str = "ana") -> tuple[Person, UUID]:
    """A recurring email whose key does not tell one time from the next."""
    ada = desk.person(words)
    send = desk.ask(ada, key=f"statement:{ada.id}", text="Thank you")
    desk.go()
    desk.later(10 * 24 * HOUR, send)
    desk.ask(ada, key=f"statement:{ada.id}", text=text)
    return ada, send


@found(Finding.DELIVERED, PROVED, "attempt 1")
def never_by_a_request_that_failed_and_was_made_again_under_another_key(desk: Desk) -> Iterator[Played]:
    failed, send = _failed_and_asked_for_again(desk)
    yield Played(str(failed), [send])


# ── never, late, twice, unwanted: at another time ────────────────────────────────────────────────────────────────────


def _of_another_time(desk: Desk) -> Played:
    """An order whose only email went long before the time that the customer tells."""
    ada = desk.person()
    send = desk.ask(ada, trigger=f"order:{ada.id}")
    desk.go()
    desk.later(30 * 24 * HOUR, send)
    return Played(
        f"order:{ada.id}", [send], {"around": (now() - HOUR, now())},
        words="; no email that goes by what was given was under way between",
    )  # fmt: skip


@found(Finding.DELIVERED, PROVED, "attempt 1", "event")
def never_by_an_order_of_which_nothing_went_then(desk: Desk) -> Iterator[Played]:
    yield _of_another_time(desk)


@found(Finding.ONE_COPY, PROVED, "attempt 1")
def twice_by_an_order_of_which_nothing_went_then(desk: Desk) -> Iterator[Played]:
    yield _of_another_time(desk)


@found(Finding.ON_TIME, PROVED, "attempt 1", "event", "send")
def late_by_an_order_of_which_nothing_went_then(desk: Desk) -> Iterator[Played]:
    yield _of_another_time(desk)


@found(Finding.NO_OPT_OUT, PROVED, "attempt 1", "send")
def unwanted_by_an_order_of_which_nothing_went_then(desk: Desk) -> Iterator[Played]:
    yield _of_another_time(desk)


# ── never: what became of the send ───────────────────────────────────────────────────────────────────────────────────


def _sent(desk: Desk, words: str, **how: Any) -> Played:
    ada = desk.person(words)
    send = desk.ask(ada, **how)
    desk.go()
    return Played(ada.id, [send])


@found(Finding.FAILED, PROVED, "attempt 1", "move")
def never_because_the_provider_refused_it(desk: Desk) -> Iterator[Played]:
    yield _sent(desk, "reject")


@found(Finding.SUPPRESSED, PROVED, "move", "suppression")
def never_because_an_earlier_one_bounced(desk: Desk) -> Iterator[Played]:
    ada = desk.person("bounce")
    first = desk.ask(ada, text="first")
    desk.go()
    desk.later(timedelta(days=9), first)
    second = desk.ask(ada, text="second")
    desk.go()
    yield Played(str(second), [second], words="an earlier email to this address bounced for good")


@found(Finding.CANCELLED, PROVED, "move")
def never_because_a_person_cancelled_it(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada)
    desk.relay()
    desk.cancel(send)
    desk.go()
    yield Played(ada.id, [send])


@found(Finding.REFUSED_AFTER_TAKING, PROVED, "attempt 1", "event")
def never_because_the_provider_did_not_pass_it_on(desk: Desk) -> Iterator[Played]:
    yield _sent(desk, "failed")


@found(Finding.BOUNCED, PROVED, "attempt 1", "event")
def never_because_their_server_refused_it(desk: Desk) -> Iterator[Played]:
    yield _sent(desk, "bounce")


@found(Finding.HELD, PROVED, "move")
def never_because_it_is_held_as_late(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada, stream=desk.stream(too_late_after=HOUR, late_policy="hold"))
    desk.relay()
    desk.later(2 * HOUR, send)
    desk.go()
    yield Played(ada.id, [send], words="Held for a person")


@found(Finding.HELD_IN_DOUBT, CANNOT_TELL, "attempt 1", "move")
def never_because_a_person_must_decide(desk: Desk) -> Iterator[Played]:
    send = _held_without_an_answer(desk, "lost-quiet")
    yield Played(str(send), [send])


@found(Finding.UNKNOWN, CANNOT_TELL, "attempt 1")
def never_perhaps(desk: Desk) -> Iterator[Played]:
    yield _sent(desk, "lost-quiet", stream=desk.stream(keys=False))


@found(Finding.MAY_HAVE_LEFT, CANNOT_TELL, "attempt 1", "move")
def never_perhaps_for_it_was_cancelled_without_an_answer(desk: Desk) -> Iterator[Played]:
    ada = desk.person("lost-quiet")
    send = desk.ask(ada, stream=desk.stream("security", policy="cancel", keys=False))
    desk.go()
    desk.grace_ends(send)
    yield Played(ada.id, [send])


@found(Finding.TAKEN, PROVED, "attempt 1", complaint=Complaint.NEVER)
def never_though_it_left_after_it_was_cancelled(desk: Desk) -> Iterator[Played]:
    send = _cancelled_and_taken(desk)
    yield Played(str(send), [send])


def _cancelled_and_taken(desk: Desk) -> UUID:
    with desk.silence():
        ada = desk.person("lost")
        send = desk.ask(ada, stream=desk.stream("security", policy="cancel", keys=False))
        desk.relay()
        desk.dispatch()
        desk.grace_ends(send)
    return send


@found(Finding.WORKER_STOPPED, PROVED, "claim 1")
def never_because_its_worker_stopped(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada)
    desk.relay()
    assert send in {claim.send_id for claim in Hand(desk.place).claim()}
    yield Played(ada.id, [send])


@found(Finding.STALE_CLAIM, PROVED, "claim 1")
def never_because_its_claim_ran_out(desk: Desk) -> Iterator[Played]:
    ada, hand = desk.person(), _colleague(desk)
    send = desk.ask(ada)
    desk.relay()
    assert send in {claim.send_id for claim in hand.claim()}
    desk.place.run("update sendonce.work set lease_until = now() - interval '1 second' where send_id = %s", send)
    yield Played(ada.id, [send])


@found(Finding.CLAIMED, PROVED, "claim 1")
def never_yet_for_a_worker_has_just_claimed_it(desk: Desk) -> Iterator[Played]:
    ada, hand = desk.person(), _colleague(desk)
    send = desk.ask(ada)
    desk.relay()
    assert send in {claim.send_id for claim in hand.claim()}
    yield Played(ada.id, [send])


def _colleague(desk: Desk) -> Hand:
    """Another worker, which beats."""
    hand = Hand(desk.place)
    desk.place.run(
        "insert into sendonce.workers (id, name, version, loops) values (%s, 'other', '0', '{dispatch}')", hand.id
    )
    return hand


@found(Finding.SUBMITTING, CANNOT_TELL, "attempt 1")
def never_yet_for_its_call_is_running(desk: Desk) -> Iterator[Played]:
    ada = desk.person("quiet")
    send = desk.ask(ada)
    desk.relay()
    with _no_answer(desk):
        yield Played(ada.id, [send])


@contextmanager
def _no_answer(desk: Desk) -> Iterator[None]:
    """The provider has taken it, and has not answered yet."""
    taken = len(desk.scene.simulator.books)
    desk.scene.simulator.hold_answers()
    desk.place.run("update sendonce.workers set heartbeat_at = now() where name = 'lane'")
    desk.lane.go_round()
    assert desk.scene.simulator.wait_taken(taken + 1)
    try:
        yield
    finally:
        desk.scene.simulator.release_answers()
        desk.go()


@found(Finding.PAUSED, PROVED, "work")
def never_yet_for_its_mailstream_is_paused(desk: Desk) -> Iterator[Played]:
    ada, stream = desk.person(), desk.stream()
    with desk.place.database.transaction() as connection:
        pause_by_person(connection, workspace_id=desk.place.workspace, name=stream, reason="wrong prices")
    send = desk.ask(ada, stream=stream)
    desk.go()
    yield Played(ada.id, [send], words='"wrong prices"')


@found(Finding.PAUSED, PROVED, "work")
def never_yet_for_its_provider_is_paused(desk: Desk) -> Iterator[Played]:
    ada, stream = desk.person(), desk.stream()
    account = desk.scene.account(f"acme-{ada.id}")
    desk.place.run("update sendonce.mailstreams set account_id = %s where name = %s", account, stream)
    with desk.place.database.transaction() as connection:
        pause_account(connection, account, reason="the quota is used up")
    send = desk.ask(ada, stream=stream)
    desk.go()
    yield Played(ada.id, [send], words='"the quota is used up"')


@found(Finding.PAUSED, PROVED, "work", "attempt 1")
def never_yet_for_its_provider_takes_nothing_for_now(desk: Desk) -> Iterator[Played]:
    ada, stream = desk.person("busy"), desk.stream()
    account = desk.scene.account(f"acme-{ada.id}")
    desk.place.run("update sendonce.mailstreams set account_id = %s where name = %s", account, stream)
    send = desk.ask(ada, stream=stream)
    desk.go()
    yield Played(ada.id, [send], words=f"the account acme-{ada.id} at Resend is paused")


@found(Finding.WAITS_FOR_CALLER, PROVED, "work")
def never_yet_for_its_own_job_has_to_come_again(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    with Ledger(desk.place.database, desk.place.vault) as ledger, pytest.raises(InProgress):
        send_once(
            ledger, mailstream="receipts", key=f"job:{ada.id}", recipient_id=ada.id, address=ada.address,
            fingerprint="f", trigger=("job", ada.id),
            submit=lambda key: Rejected(scope="message", retryable=True, reason="later"),
        )  # fmt: skip
    yield Played(f"job:{ada.id}", desk.scene.ids(f"job:{ada.id}"))


@found(Finding.WAITS_TO_RETRY, PROVED, "attempt 1", "work")
def never_yet_for_the_provider_refused_it_for_now(desk: Desk) -> Iterator[Played]:
    yield _sent(desk, "greylist", stream=desk.stream(smtp=True))


@found(Finding.BACKLOG, PROVED, "work")
def never_yet_for_no_worker_is_free(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada)
    desk.relay()
    yield Played(ada.id, [send])


@found(Finding.SCHEDULED, PROVED, "work")
def never_yet_for_it_is_due_later(desk: Desk) -> Iterator[Played]:
    yield _sent(desk, "ana", not_before=now() + 3 * HOUR)


@found(Finding.DEFERRED, PROVED, "attempt 1", "event")
def never_yet_for_their_server_put_it_off(desk: Desk) -> Iterator[Played]:
    played = _sent(desk, "quiet")
    _tell(desk, played.sends[0], "delivery_delayed")
    yield played


def _tell(desk: Desk, send: UUID, kind: str, **data: Any) -> None:
    """The provider tells something more about a message that it took."""
    (accepted,) = [row for row in desk.scene.simulator.books if row.send_id == str(send)]
    at = now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
    body = event(kind, accepted.message_id, send=send, at=at, to=[accepted.recipient], **data)
    assert desk.scene.tell(desk.place.account, body).kind == "2xx"


@found(Finding.MARKED_ACCEPTED, LIKELY, "decision")
def never_though_a_person_counted_it_as_accepted(desk: Desk) -> Iterator[Played]:
    send = _held_without_an_answer(desk, "lost-quiet")
    desk.decide(send, Decision.MARK_ACCEPTED)
    yield Played(str(send), [send])


@found(Finding.SILENT, PROVED, "attempt 1")
def never_though_the_provider_took_it_and_tells_nothing(desk: Desk) -> Iterator[Played]:
    yield _sent(desk, "quiet")


@found(Finding.CONTRADICTION, CANNOT_TELL, "send")
def never_since_somebody_mended_the_ledger_by_hand(desk: Desk) -> Iterator[Played]:
    """A call got no answer, and somebody with psql did away with the row that was in their way."""
    played = _sent(desk, "lost-quiet", stream=desk.stream(keys=False))
    (send,) = played.sends
    row = desk.place.one("delete from sendonce.work w where send_id = %s returning to_jsonb(w) as work", send)["work"]
    assert "contradicts itself" in desk.answer(Complaint.TWICE, str(send))[1].sentence, "whatever the complaint is"
    played.words = "contradicts itself"
    yield played
    desk.place.run("insert into sendonce.work select (jsonb_populate_record(null::sendonce.work, %s)).*", Jsonb(row))


@found(Finding.COMPLAINED, PROVED, "attempt 1", "event")
def never_though_it_was_reported_as_spam(desk: Desk) -> Iterator[Played]:
    yield _sent(desk, "complain")


@found(Finding.DELIVERED, PROVED, "attempt 1", "event")
def never_though_it_was_delivered(desk: Desk) -> Iterator[Played]:
    yield _sent(desk, "ana")


@found(Finding.REPLIED_TO, PROVED, "attempt 1", "event", "reply")
def never_though_it_was_answered(desk: Desk) -> Iterator[Played]:
    played = _sent(desk, "ana")
    (send,) = played.sends
    with desk.place.database.transaction() as connection:
        mail = Mail(
            message_id="r-1@example.test", sender=read_address(connection, desk.place.vault, send), recipients=(),
            names=[Name(send, None)], written_at=None, automatic=False, subject="Re: it", text=None,
        )  # fmt: skip
        keep(
            connection, desk.place.vault, workspace_id=desk.place.workspace, account_id=desk.place.account,
            mails=[mail], received_at=database_now(connection),
        )  # fmt: skip
    yield played


@found(Finding.BOUNCED, PROVED, "event")
def never_one_of_three_that_bounced(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    sends = [desk.ask(ada, text=f"{n}") for n in range(2)]
    third = desk.ask(Person(ada.id, f"softbounce+{ada.id}@example.test"), text="3")
    desk.go()
    assert len(sends) == 2
    yield Played(ada.id, [third], words="2 other sends are with the evidence")


@found(Finding.ACCEPTED_MORE_THAN_ONCE, PROVED, "attempt", complaint=Complaint.NEVER)
def never_though_it_went_twice(desk: Desk) -> Iterator[Played]:
    with desk.silence():
        send = _held_without_an_answer(desk, "lost")
        desk.decide(send, Decision.RESEND)
        desk.dispatch()
    yield Played(str(send), [send])


# ── late ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@found(Finding.ON_TIME, PROVED, "attempt 1", "event", "send")
def late_though_it_was_on_time(desk: Desk) -> Iterator[Played]:
    yield _sent(desk, "ana", at=now())


@found(Finding.ON_TIME, PROVED, "attempt 1", "event", "send")
def late_says_somebody_for_whom_something_else_is_planned(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada)
    desk.ask(ada, text="Your week", not_before=now() + HOUR)
    desk.go()
    yield Played(ada.id, [send])


@found(Finding.ON_TIME, PROVED, "attempt 1", "event", "send")
def late_by_a_request_that_failed_and_was_made_again_under_another_key(desk: Desk) -> Iterator[Played]:
    failed, send = _failed_and_asked_for_again(desk)
    yield Played(str(failed), [send])


@found(Finding.STILL_ON_ITS_WAY, PROVED, "work")
def late_and_not_there_yet(desk: Desk) -> Iterator[Played]:
    yield _sent(desk, "ana", not_before=now() + HOUR)


@found(Finding.ASKED_LATE, PROVED, "send")
def late_because_it_was_asked_for_late(desk: Desk) -> Iterator[Played]:
    played = _sent(desk, "ana", at=now() - 3 * HOUR)
    played.words = "asked for this email 3 h later"
    yield played


@found(Finding.WAITED_IN_OUTBOX, PROVED, "send")
def late_because_no_relay_ran(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada)
    desk.later(2 * HOUR, send)
    desk.go()
    yield Played(ada.id, [send], words="it waited 2 h in the outbox")


@found(Finding.ASKED_FOR_LATER, PROVED, "send")
def late_because_it_was_wanted_late(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada, not_before=now() + 5 * HOUR)
    desk.relay()
    desk.later(5 * HOUR + MINUTE / 2, send)
    desk.go()
    yield Played(ada.id, [send], words="wanted it sent no earlier than")


@found(Finding.WAITED_FOR_WORKER, PROVED, "send", "attempt 1")
def late_because_of_a_backlog(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada)
    desk.relay()
    desk.later(HOUR, send)
    desk.go()
    yield Played(ada.id, [send], words="waited 1 h for a free worker")


@found(Finding.WORKER_HAD_STOPPED, PROVED, "move")
def late_because_its_worker_had_stopped(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada)
    desk.relay()
    assert send in {claim.send_id for claim in Hand(desk.place).claim()}
    desk.later(HOUR, send)
    desk.sweep()
    desk.go()
    yield Played(ada.id, [send], words="A worker had claimed it and stopped: 1 h passed")


@found(Finding.WAS_PAUSED, PROVED, "move")
def late_because_its_mailstream_was_paused(desk: Desk) -> Iterator[Played]:
    ada, stream = desk.person(), desk.stream()
    send = desk.ask(ada, stream=stream)
    desk.relay()
    hand = _colleague(desk)
    claims = hand.claim()
    assert send in {claim.send_id for claim in claims}
    with desk.place.database.transaction() as connection:
        pause_by_person(connection, workspace_id=desk.place.workspace, name=stream, reason="wrong prices")
    hand.start(claims)
    desk.later(HOUR, send)
    desk.place.run("update sendonce.mailstreams set paused_at = null, paused_reason = null where name = %s", stream)
    desk.go()
    yield Played(ada.id, [send], words="because its mailstream is paused")


@found(Finding.PROVIDER_WAS_SLOW, PROVED, "attempt 1", "move", "attempt 2")
def late_because_the_provider_refused_it_at_first(desk: Desk) -> Iterator[Played]:
    ada = desk.person("greylist")
    send = desk.ask(ada, stream=desk.stream(smtp=True))
    desk.relay()
    desk.dispatch()
    desk.later(HOUR, send)
    desk.go()
    yield Played(ada.id, [send], words="1 call that failed")


@found(Finding.WAS_UNKNOWN, LIKELY, "attempt 1", "move")
def late_because_a_call_got_no_answer(desk: Desk) -> Iterator[Played]:
    ada = desk.person("reset")
    send = desk.ask(ada, stream=desk.stream(policy="release", grace=MINUTE))
    desk.go()
    desk.grace_ends(send)
    desk.go()
    yield Played(ada.id, [send], words="A call got no answer")


@found(Finding.WAS_UNKNOWN, LIKELY, "attempt 1", "move")
def late_because_a_call_got_no_answer_and_an_event_came_before_that_of_the_next(desk: Desk) -> Iterator[Played]:
    ada = desk.person("reset")
    send = desk.ask(ada, stream=desk.stream(policy="release", grace=MINUTE))
    desk.go()
    desk.grace_ends(send)
    desk.scene.simulator.configure(webhooks={"overtake": 1.0})
    desk.go()
    desk.scene.simulator.configure(webhooks={"overtake": 0.0})
    yield Played(ada.id, [send])


@found(Finding.WAS_HELD, PROVED, "move")
def late_because_a_person_had_to_decide(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada, stream=desk.stream(too_late_after=HOUR, late_policy="hold"))
    desk.relay()
    desk.later(2 * HOUR, send)
    desk.dispatch()
    desk.later(9 * HOUR, send)
    desk.decide(send, Decision.RESEND)
    desk.go()
    yield Played(ada.id, [send], words="held for a person for 9 h")


@found(Finding.HAD_FAILED, PROVED, "move")
def late_because_it_had_failed_at_first(desk: Desk) -> Iterator[Played]:
    ada = desk.person("greylist")
    send = desk.ask(ada, stream=desk.stream(smtp=True, max_attempts=1))
    desk.go()
    desk.later(5 * HOUR, send)
    operator = person(desk.place)
    with desk.place.database.transaction() as connection:
        replay_send(connection, workspace_id=desk.place.workspace, send_id=send, user_id=operator, reason="mended")
    desk.go()
    yield Played(ada.id, [send], words="It had failed")


@found(Finding.WAS_DEFERRED, PROVED, "event")
def late_because_their_server_put_it_off(desk: Desk) -> Iterator[Played]:
    ada = desk.person("quiet")
    send = desk.ask(ada)
    desk.go()
    _tell(desk, send, "delivery_delayed")
    desk.later(3 * HOUR, send)
    _tell(desk, send, "delivered")
    yield Played(ada.id, [send], words="put it off for 3 h")


@found(Finding.PASSED_ON_LATE, PROVED, "attempt 1", "event")
def late_because_the_provider_passed_it_on_late(desk: Desk) -> Iterator[Played]:
    ada = desk.person("quiet")
    send = desk.ask(ada)
    desk.go()
    desk.later(2 * HOUR, send)
    _tell(desk, send, "delivered")
    yield Played(ada.id, [send], words="needed 2 h to deliver it")


# ── unwanted ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@found(Finding.NO_OPT_OUT, PROVED, "attempt 1", "send")
def unwanted_though_nobody_had_said_so(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    send = desk.ask(ada, trigger=f"order:{ada.id}")
    desk.go()
    yield Played(ada.id, [send], words=f"order.paid order:{ada.id} asked for it")


@found(Finding.BEFORE_OPT_OUT, PROVED, "attempt 1", "suppression")
def unwanted_by_somebody_who_opted_out_afterwards(desk: Desk) -> Iterator[Played]:
    ada = desk.person("complain")
    send = desk.ask(ada, stream=desk.stream("lifecycle"))
    desk.go()
    yield Played(ada.id, [send], words="before the newest word on record: the recipient reported an email as spam")


@found(Finding.OPT_OUT_HEARD_LATE, PROVED, "attempt 1", "suppression")
def unwanted_by_somebody_whose_wish_reached_us_late(desk: Desk) -> Iterator[Played]:
    ada, stream = desk.person(), desk.stream("lifecycle")
    send = desk.ask(ada, stream=stream)
    desk.go()
    _says(desk, ada, stream, at=now() - HOUR)
    yield Played(ada.id, [send], words="but we heard of it only")


@found(Finding.OPT_OUT_HEARD_LATE, PROVED, "attempt 1", "suppression")
def unwanted_by_somebody_whose_wish_was_being_stored_when_it_left(desk: Desk) -> Iterator[Played]:
    ada, stream = desk.person(), desk.stream("lifecycle")
    send = desk.ask(ada, stream=stream)
    desk.relay()
    with _saying(desk, ada, stream, at=now() - HOUR):
        desk.dispatch()
    desk.hear()
    yield Played(ada.id, [send], words="but we heard of it only")


@found(Finding.NO_OPT_OUT, PROVED, "attempt 1", "send")
def unwanted_by_a_request_that_failed_and_was_made_again_under_another_key(desk: Desk) -> Iterator[Played]:
    failed, send = _failed_and_asked_for_again(desk)
    yield Played(str(failed), [send])


def _says(desk: Desk, who: Person, stream: str, *, suppressed: bool = True, at: Any = None, **more: Any) -> None:
    with _saying(desk, who, stream, suppressed=suppressed, at=at, **more):
        pass


@contextmanager
def _saying(
    desk: Desk, who: Person, stream: str, *, suppressed: bool = True, at: Any = None, **more: Any
) -> Iterator[None]:
    """What is done meanwhile cannot see it yet."""
    said = Statement(
        workspace_id=desk.place.workspace, address_lookup=desk.place.vault.lookup(who.address),
        scope=SuppressionScope.STREAM, mailstream=stream, suppressed=suppressed, said_at=at or now(),
        **{"source": "unsubscribed" if suppressed else "resubscribed"} | more,
    )  # fmt: skip
    with desk.place.database.transaction() as connection:
        suppressions.say(connection, [said])
        yield


@found(Finding.EXEMPT, PROVED, "attempt 1", "suppression")
def unwanted_by_somebody_who_opted_out_of_other_mail(desk: Desk) -> Iterator[Played]:
    ada, news = desk.person(), desk.stream("campaign")
    _says(desk, ada, news)
    send = desk.ask(ada)
    desk.go()
    yield Played(ada.id, [send], words=f"only of the mailstream {news}")


@found(Finding.OPT_OUT_LIFTED, PROVED, "attempt 1", "suppression")
def unwanted_by_somebody_who_subscribed_again(desk: Desk) -> Iterator[Played]:
    ada, news = desk.person(), desk.stream("campaign")
    _says(desk, ada, news, at=now() - 3 * HOUR)
    _says(desk, ada, news, at=now() - 2 * HOUR, suppressed=False)
    send = desk.ask(ada, stream=news)
    desk.go()
    yield Played(ada.id, [send], words="the recipient, who subscribed again, lifted it")


@found(Finding.CANCEL_TOO_LATE, PROVED, "attempt 1", "audit")
def unwanted_though_it_was_cancelled_while_its_call_ran(desk: Desk) -> Iterator[Played]:
    ada = desk.person("quiet")
    send = desk.ask(ada)
    desk.relay()
    with _no_answer(desk):
        assert isinstance(desk.cancel(send), Remembered)
    yield Played(ada.id, [send], words="Ada cancelled it at")


@found(Finding.TAKEN_THOUGH_STOPPED, PROVED, "attempt 1")
def unwanted_though_it_was_cancelled_without_an_answer(desk: Desk) -> Iterator[Played]:
    send = _cancelled_and_taken(desk)
    yield Played(str(send), [send])


@found(Finding.MAY_HAVE_LEFT, CANNOT_TELL, "attempt 1")
def unwanted_and_perhaps_not_from_us(desk: Desk) -> Iterator[Played]:
    yield _sent(desk, "lost-quiet", stream=desk.stream(keys=False))


@found(Finding.NOT_BY_US, PROVED, "attempt 1")
def unwanted_though_the_provider_refused_ours(desk: Desk) -> Iterator[Played]:
    yield _sent(desk, "reject")


@found(Finding.NOT_BY_US, LIKELY, "unmatched event")
def unwanted_from_another_program(desk: Desk) -> Iterator[Played]:
    ada = desk.person()
    desk.beside(ada)
    yield Played(ada.address, words="no send here asked for")


@found(Finding.NOTHING_KNOWN, CANNOT_TELL)
def unwanted_from_nobody_that_is_known(desk: Desk) -> Iterator[Played]:
    yield Played("nobody@example.test")


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.play.__name__)
def test_the_cause_is_found_and_its_rows_prove_it(desk: Desk, situation: Situation) -> None:
    playing = situation.play(desk)
    played = next(playing)
    case, answer = desk.answer(situation.complaint, played.who, **played.how)
    next(playing, None)
    assert (answer.finding, answer.sureness) == (situation.finding, situation.sureness), answer
    assert played.words in answer.sentence
    rows = [proof.row for proof in answer.proof]
    for kind in situation.rows:
        assert [row for row in rows if row == kind or row.startswith(f"{kind} ")], f"no {kind} among {rows}"
    assert {proof.send for proof in answer.proof if proof.send} == set(played.sends)
    assert (answer.would_tell != "") == (answer.sureness is not PROVED), "what is not proved says what would tell"
    assert answer.next
    assert not answer.sentence.endswith(".")
    told = facts(case, answer)
    assert {fact.proof for fact in told} == set(answer.proof), "each row of proof is shown"
    assert document(case, answer)["cause"] == answer.finding
    words = reply(answer, case.now)
    assert not set("{}[]…") & set(words)


def test_every_cause_is_played() -> None:
    assert {situation.finding for situation in SITUATIONS} == set(Finding)


def test_an_old_email_that_was_asked_for_again_has_a_reply_of_its_own(desk: Desk) -> None:
    ada, send = _asked_for_again_after_days(desk, text="Thank you")
    desk.go()
    case, answer = desk.answer(Complaint.NEVER, ada.address, around=(now() - HOUR, now()))
    assert answer.about == send
    words = reply(answer, case.now)
    assert words.startswith("No new email was sent to you on "), "and not that it was delivered"
    old = now() - timedelta(days=10)
    assert f"a repeat of an earlier email, which left us on {old.day} {old:%B}" in words


def test_every_cause_has_a_reply() -> None:
    assert set(REPLIES) == set(Finding)
