"""The part of the OpenAPI document about operations, written by hand; a test compares it with routes and answers."""

from __future__ import annotations

from dashboard.ledger.audit import AuditFilter
from dashboard.web.api.openapi_parts import (
    AFTER,
    ID,
    MISSING,
    ONLY_REASON,
    REFUSED,
    TAKEN,
    Schema,
    answer,
    maybe,
    number,
    operation,
    query,
    ref,
    text,
    time,
    whole,
)

NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
NUMBER = {"name": "number", "in": "path", "required": True, "schema": {"type": "integer"}}
VERDICTS = ["good", "weak", "wrong", "unknown"]
TEXTS: Schema = {"type": "array", "items": {"type": "string"}}

ACCOUNT: dict[str, Schema] = {
    "name": text("Its name."),
    "provider": text("Its provider."),
    "breaker": text("open: out of reach, nothing is tried; trying: one call tries.", enum=["closed", "open", "trying"]),
    "troubles": number("Failures in a row."),
    "paused": {"type": "boolean"},
    "paused_until": maybe(time("Null: until somebody resumes it, or not paused.")),
    "paused_reason": maybe(text("Why.")),
    "rate_per_second": {"type": ["number", "null"], "description": "Calls a second at most; null: no limit of ours."},
    "key_window_seconds": {"type": ["number", "null"], "description": "How long it recognises repeats; null: never."},
    "mailstreams": {**TEXTS, "description": "Those that send by it."},
}

SCHEMAS: dict[str, Schema] = {
    "Workers": whole(workers={"type": "array", "items": ref("Worker")}),
    "Worker": whole(
        id=text("It.", format="uuid"), name=text("Host, process and a random part."), version=text("Of Sendonce."),
        loops={**TEXTS, "description": "What it does."},
        state=text("How it stands.", enum=["running", "draining", "stopped", "lost"]),
        in_flight=number("Calls that are running."), refused_moves=number("Late moves that were refused."),
        started_at=time("Since when."), heartbeat_at=time("Its last beat."), stopped_at=maybe(time("Its polite end.")),
    ),
    "Draining": whole(id=text("The worker.", format="uuid"), name=text("Its name."), state=text("draining")),
    "Account": whole(**ACCOUNT),
    "Accounts": whole(accounts={"type": "array", "items": ref("AccountWithErrors")}),
    "AccountWithErrors": whole(**ACCOUNT, errors={"type": "array", "items": ref("AccountError")}),
    "AccountError": whole(
        status=text("What became of the attempts.", enum=["rejected", "ambiguous", "abandoned"]),
        error_class=maybe(text("How they failed.")), error_code=maybe(text("The provider's code.")),
        number=number("How many lately."), last_at=time("The newest."),
    ),
    "AccountCheck": whole(
        account=text("Its name."), provider=text("Its provider."),
        webhook_url=maybe(text("To enter at the provider; null: it reports nothing.")),
        verdict=maybe(text("The worst of all findings; null: never checked.", enum=[*VERDICTS, None])),
        checked_at=maybe(time("When.")),
        broke_at=maybe(time("Since when something is wrong that was well before.")),
        awaited={"type": "boolean", "description": "A worker is at it, or will be within seconds."},
        findings={"type": "array", "items": ref("Finding")},
    ),
    "Finding": whole(
        what=text("What was looked at.", enum=["credentials", "events", "address", "domain", "spf", "dkim", "dmarc"]),
        verdict=text("weak: it works, and protects less than it could.", enum=VERDICTS),
        words=text("What was seen, and what to do."), about=text("The domain, where it is about one."),
        rule=text("Which rule says so; may be empty."), publish=text("The record that would mend it; may be empty."),
    ),
    "Pause": whole(
        name=text("Its name."), paused={"type": "boolean"}, paused_reason=maybe(text("Why; null: not paused.")),
    ),
    "DeadLetters": whole(
        dead_letters={"type": "array", "items": ref("DeadLetter")},
        next=maybe(text("`after` of the next page; null: that was all.")),
    ),
    "DeadLetter": whole(
        number=number("Its number."), at=time("When it was set aside."), source=text("Where from."),
        account=maybe(text("Whose webhook it came by.")), reason=text("Why."),
        repeats=number("How often it came again."),
        outbox_id=maybe(text("Of a request.", format="uuid")), bytes=number("Encrypted."),
    ),
    "Requeued": whole(number=number("The dead letter."), send_id=text("What it will be.", format="uuid")),
    "Discarded": whole(number=number("The dead letter.")),
    "Suspects": whole(
        suspects={"type": "array", "items": ref("Suspect")},
        next=maybe(text("`before` of the next page; null: that was all.")),
    ),
    "Suspect": whole(
        why=text("What it looks like."), recipient_id=text("Who would get it twice."), earlier=ref("Intent"),
        later=ref("Intent"),
    ),
    "Intent": whole(
        id=text("The send.", format="uuid"), mailstream=text("Its mailstream."), key=text("Its key."),
        source=text("Where from."), trigger_type=text("What asked for it."), trigger_id=text("Its id."),
        recorded_at=time("When."),
    ),
    "Audit": whole(
        entries={"type": "array", "items": ref("AuditEntry")},
        next=maybe(text("`before` of the next page; null: that was all.")),
    ),
    "AuditEntry": whole(
        id=number("Its number."), at=time("When."), who=maybe(text("A login or a token; null: the command line.")),
        action=text("What was done."), subject=text("To what."), reason=maybe(text("Why.")),
        detail={"type": ["object", "null"], "description": "More."},
    ),
}  # fmt: skip

PATHS: dict[str, Schema] = {
    "/api/v1/workers": {
        "get": operation("listWorkers", "The workers of the last day", {"200": answer("They.", ref("Workers"))})
    },
    "/api/v1/workers/{id}/drain": {
        "post": operation(
            "drainWorker", "Ask a worker to finish what it has in flight, and end",
            {"202": answer("It obeys with its next beat.", ref("Draining")), "404": MISSING, "409": REFUSED, **TAKEN},
            parameters=[ID], requestBody=ONLY_REASON,
        )
    },
    "/api/v1/accounts": {
        "get": operation(
            "listAccounts", "Provider accounts, and their trouble", {"200": answer("They.", ref("Accounts"))}
        )
    },
    **{
        f"/api/v1/accounts/{{name}}/{verb}": {
            "post": operation(
                f"{verb}Account", summary, {"200": answer("It.", ref("Account")), "404": MISSING, **TAKEN},
                parameters=[NAME], requestBody=ONLY_REASON,
            )
        }
        for verb, summary in (
            ("pause", "Start no attempt on an account"), ("resume", "End a pause of an account"),
        )
    },
    "/api/v1/accounts/{name}/check": {
        "get": operation(
            "readAccountCheck", "What the last check of an account found",
            {"200": answer("It.", ref("AccountCheck")), "404": MISSING}, parameters=[NAME],
        ),
        "post": operation(
            "checkAccount", "Have a worker check an account now",
            {"202": answer("The last check, until the new one is done.", ref("AccountCheck")), "404": MISSING},
            parameters=[NAME],
        ),
    },
    **{
        f"/api/v1/mailstreams/{{name}}/{verb}": {
            "post": operation(
                f"{verb}Mailstream", summary,
                {"200": answer("It.", ref("Pause")), "404": MISSING, **TAKEN},
                parameters=[NAME], requestBody=ONLY_REASON,
            )
        }
        for verb, summary in (
            ("pause", "Start no attempt of a mailstream"), ("resume", "End a pause of a mailstream"),
        )
    },
    **{
        f"/api/v1/workspace/{verb}": {
            "post": operation(
                f"{verb}Workspace", summary, {"200": answer("It.", ref("Pause")), **TAKEN}, requestBody=ONLY_REASON
            )
        }
        for verb, summary in (
            ("pause", "Start no attempt of any mailstream"), ("resume", "End a pause of all sending"),
        )
    },
    "/api/v1/dead-letters": {
        "get": operation(
            "listDeadLetters", "What could not be taken, the oldest first",
            {"200": answer("A page.", ref("DeadLetters")), "400": TAKEN["400"]}, parameters=[AFTER],
        )
    },
    **{
        f"/api/v1/dead-letters/{{number}}/{verb}": {
            "post": operation(
                f"{verb}DeadLetter", summary,
                {"200": answer("Done.", ref(schema)), "404": MISSING, "409": REFUSED, **TAKEN},
                parameters=[NUMBER], requestBody=ONLY_REASON,
            )
        }
        for verb, summary, schema in (
            ("requeue", "Put it back into the outbox, where it would be taken now", "Requeued"),
            ("discard", "Let go of what it holds", "Discarded"),
        )
    },
    "/api/v1/suspects": {
        "get": operation(
            "listSuspects", "The same content to the same recipient under two keys",
            {"200": answer("The newest pairs.", ref("Suspects")), "400": TAKEN["400"]},
            parameters=[query("before", "`next` of the page before.")],
        )
    },
    "/api/v1/audit": {
        "get": operation(
            "readAudit", "What people and programs did, the newest first; for tokens that act for an admin",
            {"200": answer("A page.", ref("Audit")), "400": TAKEN["400"]},
            parameters=[
                *(query(name, "All that fit.") for name in AuditFilter.__slots__),
                query("before", "`next` of the page before."),
            ],
        )
    },
}  # fmt: skip
