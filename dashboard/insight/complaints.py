"""What a complaint comes from: a closed set of causes in an order of precedence, and what is not looked into yet.

To add a cause, write one function (a :class:`Case` in, an answer or None out) and one line in :data:`CAUSES`; a name in
``case.Finding`` and a wording in ``replies.py`` go with it, and tests tell when one of them is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dashboard.insight import complaint_late as late
from dashboard.insight import complaint_never as never
from dashboard.insight import complaint_twice as twice
from dashboard.insight import complaint_unwanted as unwanted
from dashboard.insight.case import Answer, Case, Complaint, Finding, between
from dashboard.insight.judging import Cause, Sureness
from dashboard.insight.wording import at

CAUSES: dict[Complaint, tuple[Callable[[Case], Answer | None], ...]] = {
    Complaint.TWICE: (
        twice.accepted_more_than_once,
        twice.one_message_copied,
        twice.same_content_two_keys,
        twice.same_content_two_streams,
        twice.may_be_two,
        twice.delivered_twice,
        twice.beside_sendonce,
        twice.two_revisions,
        twice.two_occurrences,
        twice.another_message,
        twice.one_copy,
        twice.one_at_most,
        twice.no_copy,
    ),
    Complaint.NEVER: (
        never.in_outbox,
        never.of_send(Cause.FAILED),
        never.of_send(Cause.SUPPRESSED),
        never.of_send(Cause.CANCELLED),
        never.of_send(Cause.REFUSED_AFTER_TAKING),
        never.of_send(Cause.BOUNCED),
        never.of_send(Cause.HELD),
        never.of_send(Cause.HELD_IN_DOUBT),
        never.of_send(Cause.UNKNOWN),
        never.of_send(Cause.MAY_HAVE_LEFT),
        never.of_send(Cause.WORKER_STOPPED),
        never.of_send(Cause.STALE_CLAIM),
        never.of_send(Cause.PAUSED),
        never.of_send(Cause.WAITS_FOR_CALLER),
        never.of_send(Cause.WAITS_TO_RETRY),
        never.of_send(Cause.BACKLOG),
        never.of_send(Cause.SUBMITTING),
        never.of_send(Cause.CLAIMED),
        never.unreadable_request,
        never.other_content_refused,
        never.of_send(Cause.DEFERRED),
        never.of_send(Cause.MARKED_ACCEPTED),
        never.of_send(Cause.SILENT),
        never.of_send(Cause.TAKEN),
        never.of_send(Cause.COMPLAINED),
        never.of_send(Cause.DELIVERED),
        never.of_send(Cause.REPLIED_TO),
        never.of_send(Cause.ACCEPTED_MORE_THAN_ONCE),
        never.key_used_before,
        never.of_send(Cause.SCHEDULED),
        never.of_send(Cause.CONTRADICTION),
        never.never_triggered,
    ),
    Complaint.LATE: (
        late.still_on_its_way,
        late.asked_late,
        late.waited_in_outbox,
        late.asked_for_later,
        late.waited_for_worker,
        late.worker_had_stopped,
        late.was_paused,
        late.provider_was_slow,
        late.was_unknown,
        late.was_held,
        late.had_failed,
        late.was_deferred,
        late.passed_on_late,
        late.on_time,
        never.in_outbox,
        never.unreadable_request,
        never.never_triggered,
    ),
    Complaint.UNWANTED: (
        unwanted.taken_though_stopped,
        unwanted.cancel_too_late,
        unwanted.opt_out_heard_late,
        unwanted.before_opt_out,
        unwanted.opt_out_lifted,
        unwanted.exempt,
        unwanted.no_opt_out,
        unwanted.may_have_left,
        unwanted.not_by_us,
    ),
}
"""In the order in which they are asked; :func:`nothing_known` answers where none of them does."""


@dataclass(frozen=True, slots=True)
class Open:
    """A cause that is not looked into, because it rests on a capability that Sendonce does not have yet."""

    complaint: Complaint
    what: str
    rests_on: str


OPEN = (
    Open(Complaint.TWICE, "a replay that made new keys", "replays as a new version"),
    Open(Complaint.TWICE, "an import or a migration that ran beside its predecessor", "imports"),
    Open(Complaint.NEVER, "a campaign that is paused or was cancelled", "campaigns"),
    Open(Complaint.NEVER, "a recipient who never agreed", "consents"),
    Open(Complaint.NEVER, "a recipient who had as much mail as is allowed", "caps"),
    Open(Complaint.UNWANTED, "a recipient who never agreed", "consents"),
)
"""What an answer does not rule out. Whoever builds the capability moves its causes to :data:`CAUSES`."""


def investigate(case: Case) -> Answer:
    """The first cause that answers. It guesses nothing: what is not known is said, and what would tell."""
    answers = (cause(case) for cause in CAUSES[case.complaint])
    return _of_its_time(case, next(filter(None, answers), None) or nothing_known(case))


def _of_its_time(case: Case, answer: Answer) -> Answer:
    """The answer; where nothing that goes by that name was under way in the time that is asked about, it says so."""
    evidence = case.evidence
    around = evidence.question.around
    if around is None or answer.about is None or any(evidence.of_the_time(trace) for trace in case.meant):
        return answer
    return replace(
        answer,
        sentence=f"{answer.sentence}; no email that goes by what was given was under way {between(around, case.now)}",
        next=f"Ask first whether the customer means this email, which is of another time. {answer.next}",
    )


def nothing_known(case: Case) -> Answer:
    """Nothing that the ledger has says anything about this complaint."""
    evidence = case.evidence
    around = evidence.question.around
    if around and around[0] < evidence.known_since:
        why = f"only what was asked for since {at(evidence.known_since, case.now).removeprefix('at ')} is all here"
        would_tell = "What your own systems keep of that time."
    elif evidence.close:
        why = "nothing here goes by exactly what was given"
        would_tell = "How it is spelt: something like it is known here, and listed below."
    else:
        why = "nothing here goes by what was given" + (", around that time" if around else "")
        would_tell = "The order's id, the recipient's id or the address; or the full headers of the email."
    return Answer(
        finding=Finding.NOTHING_KNOWN,
        sureness=Sureness.CANNOT_TELL,
        sentence=f"It cannot be told from here: {why}",
        next="Try something else that the customer has: an order, the address, or the email's headers.",
        would_tell=would_tell,
    )


def not_looked_into(complaint: Complaint) -> list[Open]:
    """What an answer to this complaint leaves open."""
    return [one for one in OPEN if one.complaint is complaint]
