"""What to answer the customer: a wording for each cause, without jargon and with nothing personal in it.

A workspace may word each its own way, in as many languages as it likes (``ledger/replies.py``). A wording may hold the
placeholders of :data:`PLACEHOLDERS`, which are times and nothing else. What stands in square brackets is left out where
one of its placeholders is not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from dashboard.insight.case import Answer, Finding
from dashboard.insight.wording import in_zone

LANGUAGE = "en"
"""The language of the wordings below."""

MOST = 4_000
"""Characters of a wording."""

PLACEHOLDERS = {
    "when": "when it left, came, or came to where it is",
    "first": "when the first of two happened, or when a wait began",
    "second": "when the second of two happened, or when a wait ended",
    "until": "when it is tried next",
}

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")

_LOOK = (
    "Please look in your spam folder and in other folders too. If you do not find it, write to us again and we will "
    "look into it further."
)
_ON_IT = "We are passing this on to the colleagues who can see to it, and will come back to you."
_NO_MORE = "We are sorry for the trouble."

REPLIES: dict[Finding, str] = {
    # twice
    Finding.ACCEPTED_MORE_THAN_ONCE:
        "You are right, and we are sorry: this email was sent to you more than once because of a technical fault on"
        " our side. Both copies are about one and the same thing, so you can ignore the second one.",
    Finding.SAME_CONTENT_TWO_KEYS:
        "You are right, and we are sorry: the same email was sent to you twice[, on {first} and on {second}]. You "
        "can ignore the second copy. We are telling the team that can stop this.",
    Finding.SAME_CONTENT_TWO_STREAMS:
        "You are right, and we are sorry: two of our systems sent you the same email[, on {first} and on {second}]."
        " You can ignore the second copy. We are telling the teams in charge.",
    Finding.MAY_BE_TWO:
        "Thank you for telling us. One of our calls to the email service got no answer, so we cannot yet say "
        "whether two copies left. Could you send us the full headers of both emails? In the meantime you can ignore"
        " the second copy.",
    Finding.DELIVERED_TWICE:
        "Our records show that we handed this email over once[, on {when}], and that it was then delivered twice on"
        " its way to you. You can ignore the second copy. " + _NO_MORE,
    Finding.BESIDE_SENDONCE:
        "Our records show one copy of this email[, sent on {first}]. Another one seems to have come from a "
        "different system of ours[ on {second}]. You can ignore the second copy; we are finding out where it came "
        "from.",
    Finding.TWO_REVISIONS:
        "Our records show two versions of this email[, sent on {first} and on {second}]. If they say different "
        "things, the later one is the one to go by.",
    Finding.TWO_OCCURRENCES:
        "Our records show two emails of the same kind[, sent on {first} and on {second}], each about something of "
        "its own. If both are about the same thing, please write to us again and we will look into it.",
    Finding.ONE_MESSAGE_COPIED:
        "Both copies carry the same message number, which means that it is one email, which was copied after it had"
        " left us. Please look whether your mailbox forwards mail, or whether two of your "
        "addresses lead to the same mailbox.",
    Finding.ONE_COPY:
        "Our records show that this email left us once[, on {when}]. A second copy can come about when your mailbox"
        " forwards mail, or when two of your addresses lead to the same mailbox.",
    Finding.ONE_AT_MOST:
        "Our records show that no more than one copy of this email can have left us. A second copy can come about "
        "when your mailbox forwards mail. Could you send us the full headers of both emails?",
    Finding.NO_COPY:
        "Our records show that this email has not left us. Could you send us the full headers of both emails, so "
        "that we can see where they came from?",
    # never: no send came of it
    Finding.IN_OUTBOX: "Your email has been prepared and is about to leave us. " + _ON_IT,
    Finding.UNREADABLE_REQUEST:
        "You are right: because of a technical fault on our side this email was not sent. " + _ON_IT,
    Finding.OTHER_CONTENT_REFUSED:
        "Only the first version of this email was sent to you[, on {first}]. " + _ON_IT,
    Finding.KEY_USED_BEFORE:
        "No new email was sent to you[ on {when}]: our systems took what should have set it off for a repeat of an "
        "earlier email[, which left us on {first}]. " + _ON_IT,
    Finding.NEVER_TRIGGERED: "We find no trace of this email: it seems that it was never set off. " + _ON_IT,
    # never: what became of the send
    Finding.FAILED: "You are right: because of a technical fault this email could not be sent. " + _ON_IT,
    Finding.SUPPRESSED:
        "We did not send this email, because mail to your address is stopped: an earlier email came back, or we "
        "were asked to stop. If you want our emails again, please tell us.",
    Finding.CANCELLED: "This email was withdrawn before it was sent. If you still need it, please tell us.",
    Finding.REFUSED_AFTER_TAKING:
        "We handed this email over[ on {when}], but it was not passed on to you. " + _ON_IT,
    Finding.BOUNCED:
        "We sent this email[ on {when}], but your mail server did not take it. Please check whether your mailbox is"
        " full and whether the address is spelt correctly, or tell us another address.",
    Finding.HELD: "This email is being checked by one of us before it leaves. " + _ON_IT,
    Finding.HELD_IN_DOUBT:
        "We cannot yet say whether this email reached you: the email service did not answer us. A colleague decides"
        " now how to go on, so that you do not get it twice.",
    Finding.UNKNOWN:
        "We cannot yet say whether this email left: the email service did not answer us. We expect to know more "
        "soon, and do not send it again before that, so that you do not get it twice.",
    Finding.MAY_HAVE_LEFT:
        "This email was stopped, but it may have left just before. Please tell us if it arrives.",
    Finding.WORKER_STOPPED:
        "Your email is delayed by a technical fault on our side, and goes out as soon as it is mended. " + _ON_IT,
    Finding.STALE_CLAIM:
        "Your email is delayed by a technical fault on our side, and goes out as soon as it is mended. " + _ON_IT,
    Finding.PAUSED:
        "We have paused sending emails of this kind for the moment. Yours goes out as soon as we resume.",
    Finding.WAITS_FOR_CALLER: "Your email is waiting to be sent by the system that prepares it. " + _ON_IT,
    Finding.WAITS_TO_RETRY:
        "Your email could not be sent at once and is being tried again[; the next try is on {until}].",
    Finding.BACKLOG:
        "Your email is waiting to be sent: we have many to send just now. It goes out as soon as its turn comes.",
    Finding.SCHEDULED: "This email is planned for later[: it goes out on {until}].",
    Finding.SUBMITTING: "This email is leaving us at this very moment. Please look again in a few minutes.",
    Finding.CLAIMED: "This email is about to leave us. Please look again in a few minutes.",
    Finding.DEFERRED:
        "We sent this email[ on {when}], and your mail server asked for it to be tried again later. It usually "
        "arrives within a few hours.",
    Finding.MARKED_ACCEPTED: "As far as we can see, this email was sent to you. " + _LOOK,
    Finding.SILENT:
        "We sent this email[ on {when}]. We have not been told whether your mail server has it. " + _LOOK,
    Finding.TAKEN: "This email had been withdrawn, but it left all the same[ on {when}]. " + _LOOK,
    Finding.COMPLAINED:
        "This email was delivered to your mail server, and reported as spam from your mailbox. Please look in your "
        "spam folder and mark it as wanted.",
    Finding.REPLIED_TO:
        "This email reached your mailbox[ on {when}]: we have an answer to it from your address. If somebody else "
        "reads your mail too, please ask them. " + _LOOK,
    Finding.DELIVERED: "This email was delivered to your mail server[ on {when}]. " + _LOOK,
    Finding.CONTRADICTION: "We are looking into what became of this email, and will come back to you.",
    # late
    Finding.STILL_ON_ITS_WAY:
        "As far as we can see, this email has not reached you yet, and we are sorry. " + _ON_IT,
    Finding.ASKED_LATE:
        "We are sorry that this email reached you late: one of our systems asked for it later than it should have[,"
        " on {second}].",
    Finding.WAITED_IN_OUTBOX:
        "We are sorry that this email reached you late: it waited on our side[ until {second}].",
    Finding.ASKED_FOR_LATER: "This email was planned for the time at which it was sent[, {second}].",
    Finding.WAITED_FOR_WORKER:
        "We are sorry that this email reached you late: there was a queue on our side[ until {second}].",
    Finding.WORKER_HAD_STOPPED:
        "We are sorry that this email reached you late: a technical fault on our side held it up[ until {second}].",
    Finding.WAS_PAUSED:
        "We are sorry that this email reached you late: we had paused emails of this kind for a while.",
    Finding.PROVIDER_WAS_SLOW:
        "We are sorry that this email reached you late: the service that delivers our emails could not take it at "
        "once.",
    Finding.WAS_UNKNOWN:
        "We are sorry that this email reached you late: the service that delivers our emails did not answer us, and"
        " we waited so that you would not get it twice.",
    Finding.WAS_HELD:
        "We are sorry that this email reached you late: one of us had to look at it before it left[ on {second}].",
    Finding.HAD_FAILED:
        "We are sorry that this email reached you late: the first try failed because of a technical fault, and it "
        "was sent again[ on {second}].",
    Finding.WAS_DEFERRED:
        "We sent this email in time[, on {first}], but your mail server did not take it at once. It was delivered[ "
        "on {when}].",
    Finding.PASSED_ON_LATE:
        "We sent this email in time[, on {first}]; the service that delivers our emails passed it on late[, on "
        "{when}]. " + _NO_MORE,
    Finding.ON_TIME:
        "Our records show that this email left us in time and was handed over[ on {when}]. When a mailbox shows it "
        "can depend on the mail server and on the program that you read it with.",
    # unwanted
    Finding.TAKEN_THOUGH_STOPPED:
        "You are right, and we are sorry: this email had been stopped, but it was on its way already.",
    Finding.CANCEL_TOO_LATE:
        "We are sorry: this email was withdrawn, but it had left already[ on {when}]. Please ignore it.",
    Finding.BEFORE_OPT_OUT:
        "This email left us[ on {when}]; our records show your wish to stop after that[, on {second}]. You will not get"
        " any more of this kind.",
    Finding.OPT_OUT_HEARD_LATE:
        "We are sorry: your wish to stop reached us only after this email had left[ on {when}]. You will not get "
        "any more of this kind.",
    Finding.EXEMPT:
        "You have asked us to stop other emails, and we keep to that. This one belongs to something that concerns "
        "you, such as an order, which is why you got it. If you do not want these either, please tell us.",
    Finding.OPT_OUT_LIFTED:
        "Our records show that emails to your address were allowed again[ on {second}]. If you do not want them, "
        "please tell us and we will stop them.",
    Finding.NO_OPT_OUT:
        "Our records hold no wish of yours not to get such emails. If you do not want them any more, please tell us"
        " and we will stop them.",
    Finding.NOT_BY_US:
        "Our records show that this email did not come from us in the usual way. Could you send us its full "
        "headers, so that we can see where it came from?",
    # all
    Finding.NOTHING_KNOWN:
        "We cannot find this email by what you told us. Could you tell us the order number or the address that it "
        "is about, and send us the full headers of the email if you have it?",
}  # fmt: skip
"""In :data:`LANGUAGE`. They do not say more than is known: what is likely is not told as a fact."""


class BadReply(ValueError):
    """A wording that cannot be used; the message says why."""


def check_reply(text: str) -> str:
    """The wording itself, if it can be filled in. Raises :class:`BadReply`."""
    if not text.strip():
        raise BadReply("Write what is to be answered, or take back your wording.")
    if len(text) > MOST:
        raise BadReply(f"A reply has at most {MOST} characters.")
    unknown = [name for name in _PLACEHOLDER.findall(text) if name not in PLACEHOLDERS]
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        raise BadReply(f"{{{unknown[0][:40]}}} is not known here; there are {known}.")
    return text.strip()


def reply(answer: Answer, now: datetime, wordings: Mapping[str, str] | None = None) -> str:
    """What to answer, in the wording of the workspace or else in ours. Times are in the zone of ``now``."""
    text = (wordings or {}).get(answer.finding.value) or REPLIES[answer.finding]
    times = {name: _time(answer.times[name], now) for name in PLACEHOLDERS if name in answer.times}
    if times.get("first") == times.get("second"):
        times.pop("second", None)  # nobody wants to read the same minute twice
    text = _OPTIONAL.sub(lambda part: _filled(part[1], times) or "", text)
    return _filled(text, times) or _PLACEHOLDER.sub("…", text)


def _filled(text: str, times: Mapping[str, str]) -> str | None:
    """The text with its placeholders filled in; None where one of them is not known."""
    if any(name not in times for name in _PLACEHOLDER.findall(text)):
        return None
    return _PLACEHOLDER.sub(lambda found: times[found[1]], text)


def _time(time: datetime, now: datetime) -> str:
    """``30 November at 20:14``; with its year where that is another one."""
    if now.tzinfo is not None:
        time = in_zone(time, now.tzinfo)
    year = f" {time.year}" if time.year != now.year else ""
    return f"{time.day} {time:%B}{year} at {time:%H:%M}"
