"""*I got it twice*: causes, each a pure function over a case.

What is proved goes first: two acceptances of one send, two sends of the same content. What is not known goes before
what is merely likely, and only where nothing is in doubt is it said that one copy left, so that the other was made
elsewhere.
"""

from __future__ import annotations

from itertools import pairwise

from dashboard.insight.case import (
    Answer,
    Case,
    Finding,
    beside,
    least_copies,
    most_copies,
    owner_of,
    proof_of,
    same_content,
    same_trigger,
    short,
    stream_of,
    taken_at,
    taken_proof,
    taken_words,
    trigger_of,
    uncapitalised,
    when,
)
from dashboard.insight.judging import Sureness, account_name, events_of, unanswered
from dashboard.insight.wording import at, number, provider, reference
from dashboard.ledger.trace import Trace
from dashboard.lifecycle import PROVES_ACCEPTANCE, EventType

HEADERS = "The full headers of both copies: their Message-IDs tell whether these are two messages or one."


def accepted_more_than_once(case: Case) -> Answer | None:
    """One send that the provider took more than once: which attempt was the further one, and who allowed it."""
    trace = next((trace for trace in case.meant if least_copies(trace) > 1), None)
    if trace is None:
        return None
    verdict = case.verdicts[trace.send.id]
    released = any(move.move == "release" for move in trace.moves)
    return Answer(
        finding=Finding.ACCEPTED_MORE_THAN_ONCE,
        sureness=Sureness.PROVED,
        sentence=f"One send, accepted more than once: {uncapitalised(verdict.sentence)}",
        next="Apologise; nothing more will follow. "
        + (
            f"Tell {owner_of(trace)}: its rules for an unanswered call allowed a repeat."
            if released
            else f"Tell an operator: {account_name(trace)} made two messages of it."
        ),
        proof=proof_of(trace, verdict.proof),
        about=trace.send.id,
        times=when(first=taken_at(trace), when=taken_at(trace)),
    )


def same_content_two_keys(case: Case) -> Answer | None:
    """Two triggers of one mailstream asked for the same content under two keys."""
    pair = _same_content(case, one_stream=True)
    if pair is None:
        return None
    one, other = pair
    which = (
        f"{trigger_of(one)} asked for it under two keys"
        if same_trigger(one, other)
        else f"{trigger_of(one)} and {trigger_of(other)} each asked for it, under keys of their own"
    )
    return _two(
        pair, Finding.SAME_CONTENT_TWO_KEYS,
        f"Two sends with the same content were accepted, {taken_words(one, case.now)} and "
        f"{taken_words(other, case.now)}: {which}",
        f"Ask {owner_of(one)} to let both make the same key: then the second is refused as a duplicate.",
    )  # fmt: skip


def same_content_two_streams(case: Case) -> Answer | None:
    """Two mailstreams sent the same content: both owners are named."""
    pair = _same_content(case, one_stream=False)
    if pair is None:
        return None
    one, other = pair
    where = ""
    if one.send.workspace_id != other.send.workspace_id:
        names = case.evidence.workspaces
        where = (
            f", of the workspaces {names.get(one.send.workspace_id, '')} and {names.get(other.send.workspace_id, '')}"
        )
    return _two(
        pair, Finding.SAME_CONTENT_TWO_STREAMS,
        f"Two mailstreams{where} sent the same content: {stream_of(one)} {taken_words(one, case.now)} and "
        f"{stream_of(other)} {taken_words(other, case.now)}",
        f"Ask {owner_of(one)} and {owner_of(other)} which of the two is to stay.",
    )  # fmt: skip


def _two(pair: tuple[Trace, Trace], finding: Finding, sentence: str, next: str, *, would_tell: str = "") -> Answer:
    """Two sends, each of which a provider took."""
    one, other = pair
    return Answer(
        finding=finding,
        sureness=Sureness.LIKELY if would_tell else Sureness.PROVED,
        sentence=sentence,
        next=next,
        would_tell=would_tell,
        proof=[*taken_proof(one), *taken_proof(other)],
        about=other.send.id,
        times=when(first=taken_at(one), second=taken_at(other), when=taken_at(one)),
    )


def _same_content(case: Case, *, one_stream: bool) -> tuple[Trace, Trace] | None:
    for one, other in case.pairs():
        alike = (one.send.workspace_id, one.send.mailstream) == (other.send.workspace_id, other.send.mailstream)
        if alike == one_stream and same_content(one, other) and least_copies(one) and least_copies(other):
            return one, other
    return None


def may_be_two(case: Case) -> Answer | None:
    """A call without an answer may have made a second copy: of the same send, or of another one of the same content."""
    trace = next((trace for trace in case.meant if most_copies(trace) > 1), None)
    if trace is not None:
        doubts = unanswered(trace) or trace.attempts
        unanswered_calls = number(len(doubts), "other call")
        more = (
            f"it was accepted once {taken_words(trace, case.now)}, and {unanswered_calls} got no answer"
            if least_copies(trace)
            else f"{len(trace.attempts)} calls got no answer"
        )
        return Answer(
            finding=Finding.MAY_BE_TWO,
            sureness=Sureness.CANNOT_TELL,
            sentence=f"It cannot be told whether one copy left or two: {more}",
            next="Ask for the headers of both copies.",
            would_tell=f"{HEADERS} Or the message log of {account_name(trace)}.",
            proof=[*proof_of(trace, map(reference, trace.attempts))],
            about=trace.send.id,
            times=when(when=taken_at(trace)),
        )
    for one, other in case.pairs():
        if same_content(one, other) and most_copies(one) and most_copies(other):
            doubtful = other if least_copies(one) else one
            return Answer(
                finding=Finding.MAY_BE_TWO,
                sureness=Sureness.CANNOT_TELL,
                sentence=f"Two sends have the same content, and it is not known whether a provider took both: "
                f"that of {trigger_of(doubtful)} got no answer",
                next="Ask for the headers of both copies. Whatever they tell, "
                f"{owner_of(one)} should let both triggers make one key.",
                would_tell=HEADERS,
                proof=[proof for two in (one, other) for proof in proof_of(two, map(reference, two.attempts))],
                about=doubtful.send.id,
                times=when(when=taken_at(one) or taken_at(other)),
            )
    return None


def one_message_copied(case: Case) -> Answer | None:
    """Both copies have one Message-ID: one message, copied after it had left.

    A message that may have been submitted twice carries one Message-ID both times where it goes by SMTP.
    """
    ids = case.message_ids
    if len(ids) < 2 or len(set(ids)) > 1 or any(most_copies(trace) > 1 for trace in case.meant):
        return None
    if delivered_twice(case):
        return None  # it has one Message-ID both times
    trace = next((trace for trace in case.meant if _carries(trace, ids[0])), None)
    known = trace or next(iter(case.taken), None)
    return Answer(
        finding=Finding.ONE_MESSAGE_COPIED,
        sureness=Sureness.PROVED,
        sentence="Both copies carry the same Message-ID, so it is one message, copied after it had left from here",
        next="Nothing to mend here. Suggest to look at forwarding, aliases and mailbox rules.",
        proof=taken_proof(known) if known else [],
        about=known.send.id if known else None,
        times=when(when=taken_at(known)) if known else {},
    )


def _carries(trace: Trace, message_id: str) -> bool:
    local = message_id.partition("@")[0]
    return str(trace.send.id) == local or bool({message_id, f"<{message_id}>", local} & set(trace.provider_message_ids))


def delivered_twice(case: Case) -> Answer | None:
    """Accepted once, but the provider tells of two deliveries of that one message."""
    if len(set(case.message_ids)) > 1:
        return None  # these are two messages
    for trace in case.taken:
        told = events_of(trace, EventType.DELIVERED)
        for one, other in pairwise(told):
            if one.provider_message_id == other.provider_message_id and one.occurred_at != other.occurred_at:
                name = account_name(trace)
                return Answer(
                    finding=Finding.DELIVERED_TWICE,
                    sureness=Sureness.LIKELY,
                    sentence=f"{name} accepted it once and tells of two deliveries of that one message, "
                    f"{at(one.occurred_at, case.now)} and {at(other.occurred_at, case.now)}",
                    next=f"Nothing to mend here. An operator can ask {name} about the message id.",
                    would_tell=HEADERS,
                    proof=[*taken_proof(trace), *proof_of(trace, map(reference, (one, other)))],
                    about=trace.send.id,
                    times=when(first=one.occurred_at, second=other.occurred_at, when=taken_at(trace)),
                )
    return None


def beside_sendonce(case: Case) -> Answer | None:
    """The provider tells of a message to this person that did not come from here."""
    strays = [stray for stray in case.evidence.strays if stray.event_type in PROVES_ACCEPTANCE]
    if not strays or not case.taken:
        return None
    trace, stray = case.taken[0], strays[0]
    return Answer(
        finding=Finding.BESIDE_SENDONCE,
        sureness=Sureness.LIKELY,
        sentence=f"One copy was accepted from here {taken_words(trace, case.now)}; {provider(stray.provider)} also "
        f"tells of a message to this person {at(stray.occurred_at, case.now)} that did not go through Sendonce",
        next=f"Find out what else sends by the account {short(stray.account)}, and move it here.",
        would_tell="What that other message was: its id at the provider is with the evidence.",
        proof=[*taken_proof(trace), *map(beside, strays[:5])],
        about=trace.send.id,
        times=when(first=taken_at(trace), second=stray.occurred_at, when=taken_at(trace)),
    )


COPIES = "Whether the customer's two copies say the same."


def two_revisions(case: Case) -> Answer | None:
    """One trigger asked for two emails of one mailstream whose content differs."""
    pair = _of_one_stream(case, same=True)
    if pair is None:
        return None
    one, other = pair
    return _two(
        pair, Finding.TWO_REVISIONS,
        f"Two different emails of {stream_of(one)} were accepted for {trigger_of(one)}, "
        f"{taken_words(one, case.now)} and {taken_words(other, case.now)}: the second says something else",
        f"{owner_of(one)} can tell whether the second version was meant to follow the first.",
        would_tell=COPIES,
    )  # fmt: skip


def two_occurrences(case: Case) -> Answer | None:
    """Two things happened, and each sent its own email of one mailstream."""
    pair = _of_one_stream(case, same=False)
    if pair is None:
        return None
    one, other = pair
    return _two(
        pair, Finding.TWO_OCCURRENCES,
        f"Two emails of {stream_of(one)} were accepted, each for something of its own: {trigger_of(one)} "
        f"{taken_words(one, case.now)} and {trigger_of(other)} {taken_words(other, case.now)}",
        "Nothing to mend, if both things happened.",
        would_tell=COPIES,
    )  # fmt: skip


def _of_one_stream(case: Case, *, same: bool) -> tuple[Trace, Trace] | None:
    for one, other in case.pairs():
        alike = (one.send.workspace_id, one.send.mailstream) == (other.send.workspace_id, other.send.mailstream)
        if alike and same_trigger(one, other) == same and least_copies(one) and least_copies(other):
            return one, other
    return None


def another_message(case: Case) -> Answer | None:
    """The copies carry different Message-IDs, and from here there is one at most: the other came another way."""
    if len(set(case.message_ids)) < 2 or not case.taken:
        return None
    trace = case.taken[0]
    return Answer(
        finding=Finding.BESIDE_SENDONCE,
        sureness=Sureness.LIKELY,
        sentence=f"One copy was accepted from here {taken_words(trace, case.now)}; the copies carry different "
        "Message-IDs, so the other one is a message of its own, and nothing that was looked at here sent it",
        next="Look up each Message-ID in the search box. One that nothing here goes by came another way: find out what "
        "else sends this mail.",
        would_tell="What that other message was: its headers name the server that it came from.",
        proof=taken_proof(trace),
        about=trace.send.id,
        times=when(first=taken_at(trace), when=taken_at(trace)),
    )


def one_copy(case: Case) -> Answer | None:
    """One send, one acceptance: whoever has two copies must look outside."""
    if not case.taken:
        return None
    trace = case.taken[0]
    repeats = trace.deliveries - 1
    refused = f"; it was asked for {number(repeats, 'more time')}, which made no second one" if repeats else ""
    others = [
        near
        for near in case.evidence.traces
        if near is not trace and case.evidence.same_person(near, trace) and least_copies(near)
    ]
    beyond = f"; {number(len(others), 'other email')} to this person around then had other content" if others else ""
    return Answer(
        finding=Finding.ONE_COPY,
        sureness=case.sure(),
        sentence=f"One copy of {stream_of(trace)} left from here: {account_name(trace)} accepted it once, "
        f"{taken_words(trace, case.now)}{refused}{beyond}",
        next="Look outside: forwarding, a second address that leads to the same mailbox, or a mailbox rule.",
        would_tell=HEADERS if case.evidence.cut else "",
        proof=[*taken_proof(trace), *proof_of(trace, map(reference, trace.duplicates[:3]))],
        about=trace.send.id,
        times=when(when=taken_at(trace)),
    )


def one_at_most(case: Case) -> Answer | None:
    """Nothing proves that a copy left; if one did, it is one."""
    trace = next((trace for trace in case.meant if most_copies(trace)), None)
    if trace is None:
        return None
    return Answer(
        finding=Finding.ONE_AT_MOST,
        sureness=Sureness.CANNOT_TELL,
        sentence=f"It is not known whether a copy left from here at all, and not more than one can have: "
        f"{uncapitalised(case.verdicts[trace.send.id].sentence)}",
        next=case.verdicts[trace.send.id].next,
        would_tell=HEADERS,
        proof=proof_of(trace, case.verdicts[trace.send.id].proof),
        about=trace.send.id,
    )


def no_copy(case: Case) -> Answer | None:
    """No provider took any copy: what the customer has came from somewhere else."""
    if not case.meant:
        return None
    trace = case.meant[0]
    return Answer(
        finding=Finding.NO_COPY,
        sureness=case.sure(),
        sentence=f"No copy left from here: {uncapitalised(case.verdicts[trace.send.id].sentence)}",
        next="What the customer has came from somewhere else. Ask for the headers of both copies.",
        would_tell=HEADERS if case.evidence.cut else "",
        proof=proof_of(trace, case.verdicts[trace.send.id].proof),
        about=trace.send.id,
    )
