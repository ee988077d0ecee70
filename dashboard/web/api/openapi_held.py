"""The part of the OpenAPI document about held sends, written by hand; a test compares it with routes and answers."""

from __future__ import annotations

from dashboard.ledger.holds import HoldFilter
from dashboard.ledger.tables import Stage
from dashboard.lifecycle import Decision
from dashboard.web.api.openapi_parts import (
    AFTER,
    ID,
    MISSING,
    ONLY_REASON,
    REFUSED,
    TAKEN,
    Schema,
    answer,
    body,
    maybe,
    number,
    operation,
    query,
    record,
    ref,
    text,
    time,
    whole,
)

TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
DECISION = text("What is to become of it.", enum=[str(one) for one in Decision])


HOLD: dict[str, Schema] = {
    "id": text("The send.", format="uuid"),
    "hold": number("The number of this hold; a decision names it."),
    "evidence": number("The number of the newest evidence; a decision names it, and is refused if more has come."),
    "mailstream": text("The kind of mail."),
    "key": text("The key."),
    "account": text("The account whose attempt is in doubt, or that would be used."),
    "provider": text("Its provider."),
    "reason": text("Why it is held."),
    "held_since": time("Since when."),
    "attempts": number("How many were made."),
    "together": number("How many sends the unanswered call carried in all, where it was shared; 0: it went alone."),
    "failure": maybe(text("How the last one ended.")),
    "phase": maybe(text("Where it was then.")),
    "last_attempt_at": maybe(time("When it began.")),
    "may_still_run_until": maybe(time("Before this nobody may submit it again.")),
    "key_protects_until": maybe(time("Until when the provider recognises a repeat.")),
    "useful_until": maybe(time("Undecided by then, it is cancelled.")),
    "waives": {**TEXTS, "description": "The rules that submitting it again waives, for one attempt."},
    "second_person": {"type": "boolean", "description": "A second person has to agree to a decision."},
    "choices": {**TEXTS, "description": "What may be decided."},
}  # fmt: skip
PROPOSAL: dict[str, Schema] = {
    "id": text("It.", format="uuid"),
    "stage": text("How far it has come.", enum=[str(one) for one in Stage]),
    "decision": DECISION,
    "filters": {"type": ["object", "null"], "description": "All that fit these; null: they were named one by one."},
    "sends": number("How many it is about."),
    "left_out": number("Chosen too, but the decision is none that they allow."),
    "mailstreams": {"type": "object", "description": "How many of which mailstream."},
    "person": text("Who made it."),
    "reason": maybe(text("Why.")),
    "second_person": maybe(text("Why a second person has to agree; null where nobody has to.")),
    "answered_by": maybe(text("Who agreed or declined.")),
    "answer": maybe(text("Why it was declined or withdrawn.")),
    "proposed_at": maybe(time("When it was more than a preview.")),
    "expires_at": time("When a preview, or one that nobody agreed to, ends."),
    "ended_at": maybe(time("When it came to its end.")),
}  # fmt: skip
ALIKE: Schema = {"type": "array", "description": "How attempts failed, and what became of earlier ones like them.",
                 "items": ref("Alike")}  # fmt: skip

SCHEMAS: dict[str, Schema] = {
    "Hold": whole(**HOLD),
    "HoldWithOdds": whole(**HOLD, alike=ALIKE),
    "Holds": whole(
        held={"type": "array", "items": ref("Hold")}, next=maybe(text("`after` of the next page; null: that was all."))
    ),
    "Alike": whole(
        provider=text("The provider."),
        error_class=maybe(text("How the attempt ended.")),
        phase=maybe(text("Where it was then.")),
        sends=number("How many of the sends failed so."),
        odds={
            "type": ["object", "null"],
            "description": "Of earlier attempts that failed so: `taken` of `cases` that evidence settled turned out"
            " taken, the true share lies between `low` and `high` (95 %), `untold` were never heard of,"
            " and `timed` count as not taken only since the provider's first word came after the next attempt: where it"
            " tells late, the share is too low.",
        },
    ),
    "Decision": record(
        ("decision", "reason", "hold", "evidence"), decision=DECISION, reason=text("Why.", maxLength=2000),
        hold=HOLD["hold"], evidence=HOLD["evidence"],
    ),
    "DecisionDone": whole(id=HOLD["id"], state=text("Where the send is now.")),
    "Choice": record(
        ("decision",),
        decision=DECISION,
        filters=record((), **{name: text("All that fit.") for name in HoldFilter.__slots__}),
        holds={"type": "array", "maxItems": 1000, "items": whole(hold=HOLD["hold"], evidence=HOLD["evidence"])},
    ),
    "Proposal": whole(**PROPOSAL),
    "Preview": whole(**PROPOSAL, alike=ALIKE),
    "Proposals": whole(proposals={"type": "array", "items": ref("Proposal")}),
    "ProposalState": whole(
        **PROPOSAL,
        progress=whole(
            done=number("Decided."), refused=number("Left as they were."), left=number("Not yet."),
            doubled=number("Submitted again, and accepted more than once."),
        ),
        outcomes={"type": "array", "items": ref("Outcome")},
        next=maybe(text("`after` of the next page; null: that was all.")),
    ),
    "Outcome": whole(
        id=HOLD["id"], key=HOLD["key"], mailstream=HOLD["mailstream"],
        refused=maybe(text("Why it was left as it was.")), decided_at=maybe(time("When; null: not yet.")),
    ),
}  # fmt: skip


PATHS: dict[str, Schema] = {
    "/api/v1/held": {
        "get": operation(
            "listHeld", "Held sends, the longest-waiting first",
            {"200": answer("A page.", ref("Holds")), "400": TAKEN["400"]},
            parameters=[*(query(name, "All that fit.") for name in HoldFilter.__slots__), AFTER],
        )
    },
    "/api/v1/held/{id}": {
        "get": operation(
            "readHeld", "One held send, with the ledger's own odds",
            {"200": answer("It.", ref("HoldWithOdds")), "404": MISSING}, parameters=[ID],
        ),
        "post": operation(
            "decideHeld", "Decide it",
            {
                "200": answer("It is decided.", ref("DecisionDone")),
                "202": answer("A second person has to agree first.", ref("Proposal")), "409": REFUSED,
                "404": MISSING, **TAKEN,
            },
            parameters=[ID], requestBody=body("Decision"),
        ),
    },
    "/api/v1/held/proposals": {
        "get": operation("listProposals", "Decisions about many", {"200": answer("The newest.", ref("Proposals"))}),
        "post": operation(
            "previewProposal", "Name the sends that a decision would be about; nothing is decided yet",
            {"201": answer("A preview.", ref("Preview"), Location="It."), "409": REFUSED, **TAKEN},
            requestBody=body("Choice"),
        ),
    },
    "/api/v1/held/proposals/{id}": {
        "get": operation(
            "readProposal", "How far a decision about many has come, and what came of each send",
            {"200": answer("It.", ref("ProposalState")), "404": MISSING}, parameters=[ID, AFTER],
        )
    },
    "/api/v1/held/proposals/{id}/propose": {
        "post": operation(
            "decideProposal", "Decide what was previewed",
            {"202": answer("It is being carried out, or waits for a second person.", ref("Proposal")),
             "404": MISSING, "409": REFUSED, **TAKEN},
            parameters=[ID], requestBody=ONLY_REASON,
        )
    },
    "/api/v1/held/proposals/{id}/agree": {
        "post": operation(
            "agreeToProposal", "Agree, as the second person",
            {"202": answer("It is being carried out.", ref("Proposal")), "404": MISSING, "409": REFUSED},
            parameters=[ID],
        )
    },
    "/api/v1/held/proposals/{id}/decline": {
        "post": operation(
            "declineProposal", "Do not agree, or withdraw one's own",
            {"200": answer("It has ended, and nothing is decided.", ref("Proposal")), "404": MISSING, "409": REFUSED,
             **TAKEN},
            parameters=[ID], requestBody=ONLY_REASON,
        )
    },
}  # fmt: skip
