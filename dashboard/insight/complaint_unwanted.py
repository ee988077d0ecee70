"""*I should not have got it*: causes, each a pure function over a case.

What was known about the person's wishes when the email left, and who asked for it all the same. Of an address the
ledger keeps the newest word of each reach (all mail, bulk mail, one mailstream); what was said before is not kept.
"""

from __future__ import annotations

from dashboard.insight.case import (
    Answer,
    Case,
    Finding,
    Proof,
    beside,
    least_copies,
    most_copies,
    owner_of,
    proof_of,
    short,
    stream_of,
    taken_at,
    taken_proof,
    trigger_of,
    uncapitalised,
    when,
)
from dashboard.insight.judging import Sureness, account_name
from dashboard.insight.wording import at, because, provider, quoted, reference
from dashboard.ledger.tables import SuppressionScope
from dashboard.ledger.trace import Attempt, CancelAsked, SuppressionRule, Trace
from dashboard.lifecycle import PROVES_ACCEPTANCE, MailClass, State

BULK = (MailClass.LIFECYCLE, MailClass.SCHEDULED, MailClass.CAMPAIGN)
"""The classes that a complaint reaches (DESIGN §5.17)."""


def taken_though_stopped(case: Case) -> Answer | None:
    """Suppressed or cancelled, but a call without an answer had been taken."""
    trace = next((trace for trace in case.meant if trace.send.taken_at is not None), None)
    if trace is None:
        return None
    verdict = case.verdicts[trace.send.id]
    return Answer(
        finding=Finding.TAKEN_THOUGH_STOPPED,
        sureness=verdict.sureness,
        sentence=verdict.sentence,
        next="Apologise: it was stopped, but one call was under way that could not be called back.",
        would_tell="" if verdict.sureness is Sureness.PROVED else "An event of the provider.",
        proof=proof_of(trace, verdict.proof),
        about=trace.send.id,
        times=when(when=taken_at(trace)),
    )


def cancel_too_late(case: Case) -> Answer | None:
    """Somebody cancelled it, but its call was running or over."""
    for trace in case.taken:
        if not trace.cancels:
            continue
        cancel, call = trace.cancels[0], _call(trace)
        before = f", after the call {at(call.started_at, case.now)} had begun" if call else ""
        return Answer(
            finding=Finding.CANCEL_TOO_LATE,
            sureness=Sureness.PROVED if call and call.started_at <= cancel.at else Sureness.LIKELY,
            sentence=f"{_who(cancel)} cancelled it {at(cancel.at, case.now)}{quoted(cancel.reason)}, too late: "
            f"{account_name(trace)} took it{before}",
            next="Apologise: a call that is running cannot be called back.",
            would_tell="" if call and call.started_at <= cancel.at else "Which of its calls was taken.",
            proof=[*proof_of(trace, [f"audit {cancel.id}"]), *taken_proof(trace)],
            about=trace.send.id,
            times=when(when=taken_at(trace), second=cancel.at),
        )
    return None


def _who(cancel: CancelAsked) -> str:
    return short(cancel.person) if cancel.person else "A program"


def _call(trace: Trace) -> Attempt | None:
    """The call that was taken."""
    return next(iter(trace.accepted_attempts), None)


def opt_out_heard_late(case: Case) -> Answer | None:
    """The person had opted out, and that was on record too late to stop the call."""
    for trace, rule in _rules(case, suppressed=True):
        call = _call(trace)
        if call and rule.said_at <= call.started_at and _reaches(rule, trace):
            return Answer(
                finding=Finding.OPT_OUT_HEARD_LATE,
                sureness=Sureness.PROVED,
                sentence=f"{_opt_out(rule)} {at(rule.said_at, case.now)}, but {_too_late(rule, call, case)}",
                next="Apologise: nothing of the kind follows any more.",
                proof=[_rule(trace, rule), *taken_proof(trace)],
                about=trace.send.id,
                times=when(when=taken_at(trace), second=rule.said_at),
            )
    return None


def _too_late(rule: SuppressionRule, call: Attempt, case: Case) -> str:
    heard, left = at(rule.stored_at, case.now), at(call.started_at, case.now)
    if rule.stored_at > call.started_at:
        return f"we heard of it only {heard}, after it had been handed over {left}"
    return f"we heard of it only {heard}, and it was handed over all the same {left}"


def before_opt_out(case: Case) -> Answer | None:
    """It was handed over before the person opted out."""
    for trace, rule in _rules(case, suppressed=True):
        call = _call(trace)
        if call and call.started_at < rule.said_at and _reaches(rule, trace):
            return Answer(
                finding=Finding.BEFORE_OPT_OUT,
                sureness=Sureness.PROVED,
                sentence=f"It was handed over {at(call.started_at, case.now)}, before "
                f"the newest word on record: {_opt_out(rule, capital=False)} {at(rule.said_at, case.now)}",
                next="Nothing of the kind follows any more.",
                proof=[*taken_proof(trace), _rule(trace, rule)],
                about=trace.send.id,
                times=when(when=taken_at(trace), second=rule.said_at),
            )
    return None


def exempt(case: Case) -> Answer | None:
    """The person opted out of other mail; that word does not reach this mailstream."""
    for trace, rule in _rules(case, suppressed=True):
        if not _reaches(rule, trace):
            what = (
                f"only of the mailstream {short(rule.mailstream)}"
                if rule.scope == SuppressionScope.STREAM
                else "of bulk mail"
            )
            kind = trace.stream.mail_class if trace.stream else "this"
            return Answer(
                finding=Finding.EXEMPT,
                sureness=Sureness.PROVED,
                sentence=f"{_opt_out(rule)} {at(rule.said_at, case.now)}, {what}; "
                f"{stream_of(trace)} is {kind} mail, which that does not reach. {trigger_of(trace)} asked for it",
                next="If the customer wants none of it, an operator suppresses the address; "
                f"{owner_of(trace)} can tell whether this mail may be left out.",
                proof=[_rule(trace, rule), *taken_proof(trace)],
                about=trace.send.id,
                times=when(when=taken_at(trace), second=rule.said_at),
            )
    return None


def opt_out_lifted(case: Case) -> Answer | None:
    """The person had opted out, and that was lifted before: by themselves or by somebody of ours."""
    for trace, rule in _rules(case, suppressed=False):
        call = _call(trace)
        if call and rule.said_at <= call.started_at and _reaches(rule, trace):
            who = short(rule.person) if rule.person else "the recipient, who subscribed again,"
            return Answer(
                finding=Finding.OPT_OUT_LIFTED,
                sureness=Sureness.PROVED,
                sentence=f"An opt-out had been on record; {who} lifted it {at(rule.said_at, case.now)}"
                f"{quoted(rule.reason)}, before this was handed over {at(call.started_at, case.now)}",
                next="If the customer did not want that, an operator suppresses the address again.",
                proof=[_rule(trace, rule), *taken_proof(trace)],
                about=trace.send.id,
                times=when(when=taken_at(trace), second=rule.said_at),
            )
    return None


def _rules(case: Case, *, suppressed: bool) -> list[tuple[Trace, SuppressionRule]]:
    """The sends that were taken, each with what was said about its address, those that reach it first."""
    said = [rule for rule in case.evidence.suppressions if rule.source != "bounced"]  # that is nobody's wish
    rules = [rule for rule in said if rule.suppressed == suppressed]
    home = [trace for trace in case.taken if trace.send.workspace_id == case.evidence.home]
    return [
        (trace, rule) for trace in home for rule in sorted(rules, key=lambda r: (not _reaches(r, trace), r.said_at))
    ]


def _reaches(rule: SuppressionRule, trace: Trace) -> bool:
    match rule.scope:
        case SuppressionScope.EVERYTHING:
            return True
        case SuppressionScope.BULK:
            return trace.stream is not None and trace.stream.mail_class in BULK
        case _:
            return rule.mailstream == trace.send.mailstream


_SAID = {
    "complained": "the recipient reported an email as spam",
    "unsubscribed": "the recipient unsubscribed",
}


def _opt_out(rule: SuppressionRule, *, capital: bool = True) -> str:
    said = _SAID.get(rule.source) or f"{short(rule.person) if rule.person else 'a person'} suppressed the address"
    return f"{said[:1].upper()}{said[1:]}" if capital else said


def _rule(trace: Trace, rule: SuppressionRule) -> Proof:
    return Proof(trace.send.id, f"suppression {rule.scope}{' ' + rule.mailstream if rule.mailstream else ''}")


def no_opt_out(case: Case) -> Answer | None:
    """Nothing that is on record forbade it: who asked for it."""
    if not case.taken:
        return None
    trace = case.taken[0]
    return Answer(
        finding=Finding.NO_OPT_OUT,
        sureness=case.sure(),
        sentence=f"Nothing on record here forbade it when {account_name(trace)} accepted it "
        f"{at(taken_at(trace) or case.now, case.now)}: {trigger_of(trace)} asked for it, for the mailstream "
        f"{stream_of(trace)}",
        next=f"Ask {owner_of(trace)} why it was triggered. Consents are not kept here: look where you keep them.",
        would_tell="A narrower time: there is more than was looked at." if case.evidence.cut else "",
        proof=[*proof_of(trace, ["send"]), *taken_proof(trace)],
        about=trace.send.id,
        times=when(when=taken_at(trace)),
    )


def may_have_left(case: Case) -> Answer | None:
    """Whether it left is not known."""
    trace = next((trace for trace in case.meant if most_copies(trace)), None)
    if trace is None:
        return None
    verdict = case.verdicts[trace.send.id]
    return Answer(
        finding=Finding.MAY_HAVE_LEFT,
        sureness=Sureness.CANNOT_TELL,
        sentence=f"It is not known whether it left: {uncapitalised(verdict.sentence)}",
        next=verdict.next,
        would_tell="The full headers of the email: its Message-ID tells whether it is this one.",
        proof=proof_of(trace, verdict.proof),
        about=trace.send.id,
    )


def not_by_us(case: Case) -> Answer | None:
    """It did not leave from here: another sender, or another way around Sendonce."""
    strays = [stray for stray in case.evidence.strays if stray.event_type in PROVES_ACCEPTANCE]
    if any(map(least_copies, case.meant)):
        return None
    if strays:
        stray = strays[0]
        return Answer(
            finding=Finding.NOT_BY_US,
            sureness=Sureness.LIKELY,
            sentence=f"It did not go through Sendonce: {provider(stray.provider)} tells of a message to this person "
            f"{at(stray.occurred_at, case.now)} that no send here asked for",
            next=f"Find out what else sends by the account {short(stray.account)}.",
            would_tell="The full headers of the email: its Message-ID tells whether it is this one.",
            proof=list(map(beside, strays[:5])),
            times=when(when=stray.occurred_at),
        )
    if not case.meant:
        return None
    trace = case.meant[0]
    move = next((move for move in reversed(trace.moves) if move.move in ("suppress", "cancel", "fail", "hold")), None)
    why = f", because {because(move.reason)}" if move else ""
    state = trace.state if trace.state != State.CLAIMED else "on its way"
    return Answer(
        finding=Finding.NOT_BY_US,
        sureness=case.sure(),
        sentence=f"This email did not leave from here: it is {state}{why}",
        next="What the customer has is another email. Ask for its full headers.",
        would_tell="The full headers of the email." if case.evidence.cut else "",
        proof=proof_of(trace, case.verdicts[trace.send.id].proof or ([reference(move)] if move else ["send"])),
        about=trace.send.id,
    )
