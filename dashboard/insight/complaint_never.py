"""*I never got it*: causes, each a pure function over a case.

What became of a send is what its own page says of it; here are the causes of which no send can tell, because none came
of the request, and which of several sends is told: first the one that certainly did not arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from dashboard.insight.case import (
    Answer,
    Case,
    Finding,
    asked_again,
    beside,
    between,
    owner_of,
    proof_of,
    same_content,
    short,
    taken_at,
    uncapitalised,
    when,
)
from dashboard.insight.causes import CAUSES, contradiction
from dashboard.insight.judging import Cause, Sureness
from dashboard.insight.wording import at, reference, since
from dashboard.ledger.search import Reading, names_number
from dashboard.ledger.trace import Trace
from dashboard.lifecycle import Verdict as Met


def in_outbox(case: Case) -> Answer | None:
    """Asked for, and not relayed yet: no worker can have seen it."""
    known = {trace.send.id for trace in case.evidence.traces}
    waiting = [request for request in case.evidence.waiting if request.send_id not in known]
    if not waiting:
        return None
    request = waiting[0]
    what = short(f"{request.trigger_type or ''} {request.trigger_id or ''}".strip() or request.key or "somebody")
    return Answer(
        finding=Finding.IN_OUTBOX,
        sureness=Sureness.PROVED,
        sentence=f"It has not left: asked for by {what} {at(request.asked_at, case.now)}, it still waits in the outbox",
        next="It goes as soon as a worker relays it. If the banner says that nothing moves, tell an operator.",
        proof=[beside(request)],
        times=when(when=request.asked_at),
    )


def unreadable_request(case: Case) -> Answer | None:
    """Asked for in a way that nobody can read: a dead letter."""
    if not case.evidence.unreadable or (case.meant and not case.evidence.by_person):
        return None
    letter = case.evidence.unreadable[0]
    return Answer(
        finding=Finding.UNREADABLE_REQUEST,
        sureness=Sureness.PROVED if not case.meant else Sureness.LIKELY,
        sentence=f"It was asked for {at(letter.at, case.now)} by a request that could not be taken: "
        f"{short(letter.reason)}",
        next="Tell whoever owns the trigger: the request has to be corrected and made again.",
        would_tell="" if not case.meant else "Which email the customer waits for.",
        proof=[beside(letter)],
        times=when(when=letter.at),
    )


def other_content_refused(case: Case) -> Answer | None:
    """The key was used before for other content: the later request was refused, and only the first went."""
    for trace in case.meant:
        refused = [one for one in trace.duplicates if one.verdict == Met.MISMATCH]
        asked = [one for one in refused if one.trigger_id == case.evidence.question.who.strip()]
        if Reading.TRIGGER_ID in case.evidence.readings and trace.send.trigger_id != case.evidence.question.who.strip():
            refused = asked
        if not refused:
            continue
        last, first = refused[-1], case.verdicts[trace.send.id]
        sureness = first.sureness if asked else max(first.sureness, Sureness.LIKELY, key=list(Sureness).index)
        other = next((n for n in case.meant if n is not trace and same_content(n, trace)), None)
        return Answer(
            finding=Finding.OTHER_CONTENT_REFUSED,
            sureness=sureness,
            sentence=f"A later version was asked for {at(last.at, case.now)} and refused, because its key had been "
            "used for other content; only the first version counts: "
            f"{uncapitalised(first.sentence)}",
            next=f"Ask {owner_of(trace)} to send the new version under a key of its own.",
            would_tell="" if sureness is Sureness.PROVED else "Whether the customer has the first version.",
            proof=[
                *proof_of(trace, [*map(reference, refused), *first.proof]),
                *(proof_of(other, ["send"]) if other else []),
            ],
            about=trace.send.id,
            times=when(when=last.at, first=taken_at(trace)),
        )
    return None


def key_used_before(case: Case) -> Answer | None:
    """The key was used long before for the same content: the later request made no email of its own."""
    for trace in case.meant:
        again = asked_again(case, trace)
        if again is None:
            continue
        (time, row), first = again, case.verdicts[trace.send.id]
        return Answer(
            finding=Finding.KEY_USED_BEFORE,
            sureness=first.sureness,
            sentence=f"What was asked for {at(time, case.now)} made no email of its own, because its key had been used "
            f"before: {uncapitalised(first.sentence)}",
            next=f"Ask {owner_of(trace)} whether this was to be a new email: then its key has to differ.",
            would_tell="" if first.sureness is Sureness.PROVED else first.next,
            proof=[row, *proof_of(trace, first.proof)],
            about=trace.send.id,
            times=when(when=time, first=taken_at(trace)),
        )
    return None


def never_triggered(case: Case) -> Answer | None:
    """Nothing asked for it: it was never triggered, or its transaction was rolled back."""
    evidence = case.evidence
    if evidence.named or not _could_be_known(case):
        return None
    around = evidence.question.around
    then = f" {between(around, case.now)}" if around else ""
    may_be_theirs = _is_uuid(evidence.question.who)  # a provider's id is known once an answer or an event names it
    unfinished = evidence.unfinished and (evidence.unfinished_since is None or evidence.unfinished_since <= case.end)
    sureness = Sureness.LIKELY if unfinished or evidence.cut or evidence.sealed or may_be_theirs else Sureness.PROVED
    open_since = evidence.unfinished_since
    pending = f"; a transaction that may hold it is open{' ' + since(open_since, case.now) if open_since else ''}"
    spelling = "Something like it is known, see below: check" if evidence.close else "Check"
    return Answer(
        finding=Finding.NEVER_TRIGGERED,
        sureness=sureness,
        sentence=f"No email was asked for under that{then}: its trigger never ran, or ran in a transaction that was "
        f"rolled back, which looks the same from here{pending if unfinished else ''}",
        next=f"{spelling} the spelling first. Then ask whoever owns the trigger why it did not ask for this email.",
        would_tell="" if sureness is Sureness.PROVED else _what_would_tell(case, unfinished=unfinished),
    )


def _could_be_known(case: Case) -> bool:
    """Whether a request under this name, at this time, would be seen here."""
    evidence = case.evidence
    who = evidence.question.who.strip()
    # A Message-ID names a message; several words are somebody's name or a subject. Neither names a request.
    named_otherwise = "<" in who or (len(who.split()) > 1 and not names_number(who))
    begin = evidence.question.around[0] if evidence.question.around else None
    return not named_otherwise and (begin is None or begin >= evidence.known_since)


def _what_would_tell(case: Case, *, unfinished: bool) -> str:
    if unfinished:
        return "The end of that transaction: if it is committed, the request appears here."
    if case.evidence.cut:
        return "A narrower time, or the order's id: there is more than was looked at."
    if case.evidence.sealed:
        return "Some requests around then could not be decrypted."
    return "Whether this is an id of yours: a provider's id is known here only once the provider has named it."


def _is_uuid(text: str) -> bool:
    try:
        return bool(UUID(text.strip()))
    except ValueError:
        return False


# ── what became of a send ────────────────────────────────────────────────────────────────────────────────────────────

NEXT: dict[Cause, str] = {
    Cause.DELIVERED: "Ask the customer to look in spam and in other folders. Only the mailbox can tell where it lies.",
    Cause.REPLIED_TO: "It arrived: an answer to it came from that address. Tell the customer when.",
    Cause.COMPLAINED: "It arrived: it was reported as spam from that mailbox. Later bulk mail is held back.",
    Cause.BOUNCED: "Ask for another address, or what their mail server has against it; its words are above.",
    Cause.REFUSED_AFTER_TAKING: "An operator looks at the account: the provider took it and did not pass it on.",
    Cause.DEFERRED: "Wait: the provider goes on trying, and tells here when it is through.",
    Cause.SUPPRESSED: "Keep the suppression, or ask an operator to lift it if the customer wants this mail again.",
    Cause.FAILED: "Tell {owner}: once its cause is mended, an operator can ask for it again.",
    Cause.CANCELLED: "If it is still wanted, {owner} asks for it under a new key.",
    Cause.MARKED_ACCEPTED: "Ask the customer to look in spam; nothing but a person's word says that it left.",
}
"""What an agent does; for the other causes it is what their own page says comes next."""


def of_send(cause: Cause) -> Callable[[Case], Answer | None]:
    """The cause that the page of a send tells, for the nearest send of which it is told."""

    def told(case: Case) -> Answer | None:
        own = (trace for trace in case.with_cause(cause) if asked_again(case, trace) is None)
        return next((_told(case, trace) for trace in own), None)

    told.__name__, told.__doc__ = cause.value, _TOLD[cause.value]
    return told


_TOLD = {one.__name__: one.__doc__ for one in (*CAUSES, contradiction)}
"""What the causes of one send say of themselves."""


def _told(case: Case, trace: Trace) -> Answer:
    verdict = case.verdicts[trace.send.id]
    others = len(case.meant) - 1
    more = f" ({others} other {'send is' if others == 1 else 'sends are'} with the evidence)" if others else ""
    return Answer(
        finding=Finding(verdict.cause.value),
        sureness=verdict.sureness,
        sentence=f"{verdict.sentence}{more}",
        next=NEXT.get(verdict.cause, verdict.next).format(owner=owner_of(trace))
        if verdict.cause in NEXT
        else verdict.next,
        would_tell="" if verdict.sureness is Sureness.PROVED else verdict.next,
        proof=proof_of(trace, verdict.proof),
        about=trace.send.id,
        times=when(when=_time(trace), until=_until(trace)),
    )


def _time(trace: Trace) -> datetime:
    """When it came to where it is."""
    send = trace.send
    return send.delivery_at or taken_at(trace) or send.settled_at or send.recorded_at


def _until(trace: Trace) -> datetime | None:
    work = trace.work
    return max(filter(None, (work.claim_at, work.due_at))) if work and work.claim_at else None
