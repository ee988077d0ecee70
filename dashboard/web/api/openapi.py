"""The OpenAPI document, written by hand from one dictionary; a test compares it with the routes."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from dashboard import __version__
from dashboard.insight.case import Complaint, Finding
from dashboard.insight.judging import Sureness
from dashboard.ledger.markers import Kind
from dashboard.ledger.measures import Measure
from dashboard.ledger.tables import AlertState, ChannelKind, Severity
from dashboard.lifecycle import Delivery, Reason, State
from dashboard.web.api import openapi_held, openapi_operations
from dashboard.web.api.openapi_parts import COMMON, ID, TAKEN, TIME, Schema
from dashboard.web.api.openapi_parts import answer as _answer
from dashboard.web.api.openapi_parts import as_json as _json
from dashboard.web.api.openapi_parts import maybe as _maybe
from dashboard.web.api.openapi_parts import problem as _problem
from dashboard.web.api.openapi_parts import record as _object
from dashboard.web.api.openapi_parts import ref as _ref
from dashboard.web.api.openapi_parts import text as _text
from dashboard.web.api.reading import JSON_LINES, LONGEST_WAIT, MAX_LINES


def _words(words: type[StrEnum]) -> list[str]:
    return [str(word) for word in words]


def _list(name: str, schema: str) -> Schema:
    return _object((name,), **{name: {"type": "array", "items": _ref(schema)}})


TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}

_CHANNEL: dict[str, Schema] = {
    "name": _text("Its name."),
    "kind": _text("How it is told.", enum=[kind.value for kind in ChannelKind]),
    "to": _text("Where it goes, as far as that is shown."),
    "least_severity": _text("What is less urgent is not told here.", enum=[one.value for one in Severity]),
    "last_notice": _maybe({**TIME, "description": "When the last notice was made."}),
    "last_notice_arrived": _maybe({**TIME, "description": "When that one arrived; null: not yet, or never."}),
    "last_error": _maybe(_text("What the last try of it met.")),
}

SCHEMAS: dict[str, Schema] = {
    "Request": _object(
        ("mailstream", "recipient", "trigger", "message"),
        mailstream=_text("The kind of mail, by its name."),
        key=_text(
            "The deterministic name of this email: the same trigger always gives the same key. Or in Idempotency-Key.",
            maxLength=255, pattern="^[!-~]([ -~]*[!-~])?$", examples=["receipt:order_84721:recipient_2045:v3"],
        ),
        recipient=_object(
            ("id", "address"),
            id=_text("Your own id of the recipient."),
            address=_text("The address, of the form name@domain."),
            name=_maybe(_text("The name beside the address.")),
        ),
        trigger=_object(
            ("type", "id"),
            type=_text("What asked for it.", examples=["order.paid"]),
            id=_text("Its id with you.", examples=["evt_991"]),
            at=_maybe({**TIME, "description": "When it happened."}),
            endpoint=_maybe(
                _text("Where it came in with you, so that a rise of duplicates can be laid at its door.",
                      examples=["/hooks/payments"])
            ),
        ),
        message=_ref("Message"),
        not_before=_maybe({**TIME, "description": "The send is not tried before this time."}),
        metadata=_maybe({**TEXTS, "description": "Yours, shown in the trace; not part of the content."}),
    ),
    "NewMarker": _object(
        ("kind", "title"),
        kind={"type": "string", "enum": list(Kind)},
        title=_text("What was deployed, or what went wrong.", maxLength=200, examples=["shop 4.2"]),
        at=_maybe({**TIME, "description": "When it was; now, if left out."}),
    ),
    "Marker": _object(
        ("id", "at", "kind", "title", "who"),
        id={"type": "integer"},
        at=TIME,
        kind={"type": "string", "enum": list(Kind)},
        title=_text("What was deployed, or what went wrong."),
        who=_maybe(_text("A login, or the name of a token.")),
    ),
    "Markers": _object(("markers",), markers={"type": "array", "items": _ref("Marker")}),
    "Message": {
        **_object(
            ("from", "subject"),
            **{"from": _text("An address, or Name <address>.", examples=["Shop <shop@example.com>"])},
            reply_to=_maybe(_text("An address.")),
            subject=_text("May hold variables."),
            text=_maybe(_text("The plain text; may hold variables. Text, HTML or both are needed.")),
            html=_maybe(_text("The HTML; may hold variables.")),
            headers=_maybe({**TEXTS, "description": "Further headers."}),
            template=_maybe(_text("A name for people.")),
            revision=_maybe(_text("A version for people.")),
            variables=_maybe({"type": "object", "description": "Rendered into subject, text and HTML when recorded."}),
            attachments=_maybe({"type": "array", "maxItems": 0, "description": "Not taken yet."}),
        )
    },
    "Send": _object(
        (
            "id", "mailstream", "key", "state", "settled", "reason", "provider", "provider_message_id", "delivery",
            "deliveries", "first_seen", "may_retry", "retry_by", "next_try", "links",
        ),
        id=_text("The send id: a UUID that follows from workspace, mailstream and key.", format="uuid"),
        mailstream=_text("The kind of mail."),
        key=_text("The key."),
        state=_text("Where the send is.", enum=[str(state) for state in State]),
        settled={"type": "boolean", "description": "It is accepted, failed, suppressed or cancelled."},
        reason=_maybe(_text("Why it is there.", examples=[str(Reason.ANSWERED)])),
        provider=_maybe(_text("Who was asked to deliver it; null before the first attempt.")),
        provider_message_id=_maybe(_text("The provider's id of the message.")),
        delivery=_maybe(
            _text("What the provider told later.", enum=[*(str(word) for word in Delivery), None])
        ),
        deliveries={"type": "integer", "minimum": 1, "description": "How often the key arrived."},
        first_seen={**TIME, "description": "When the key arrived first."},
        may_retry={"type": "boolean", "description": "It failed, and may still go out."},
        retry_by={
            "type": ["string", "null"], "enum": ["replay", "new_key", None],
            "description": "How: its own key again by a replay, or a corrected send under a new key.",
        },
        next_try=_maybe({**TIME, "description": "When the next attempt may start; null where none is planned."}),
        links=_object(("self", "trace", "page"), self=_text("It."), trace=_text("Its trace."), page=_text("Its page")),
    ),
    "Sends": _object(("sends",), sends={"type": "array", "items": _ref("Send")}),
    "Reason": _object(("reason",), reason=_text("Why, for whoever looks at it later.", maxLength=2000)),
    "Cancellation": _object(
        ("outcome", "send"),
        outcome=_text(
            "remembered: a call is running. Too late if the provider takes it, else it becomes cancelled.",
            enum=["cancelled", "remembered"],
        ),
        send=_ref("Send"),
    ),
    "Trace": {
        "type": "array",
        "items": _object(
            ("at", "lane", "what", "who", "detail", "evidence"),
            at=TIME, lane=_text("Where on the way."), what=_text("What happened."), who=_text("Who did it, or empty."),
            detail=_text("More, or empty."), evidence=_text("The row that proves it."),
            count={"type": "integer", "description": "How many alike are folded."},
        ),
    },
    "Complaint": _object(
        ("who", "complaint"),
        who=_text("Whom or what it is about: an address, an order, a key or any id.", maxLength=1000),
        complaint=_text("What the customer says.", enum=[str(one) for one in Complaint]),
        when=_maybe(_text("About when, as people say it or in ISO 8601.", examples=["yesterday evening"])),
        zone=_maybe(_text("The customer's time zone; UTC where it is not given.", examples=["Europe/Berlin"])),
        headers=_maybe(_text("The headers of both copies, one after the other; only their Message-IDs are read.")),
    ),
    "Answer": _object(
        (
            "complaint", "since", "until", "at", "cause", "sureness", "sentence", "next", "would_tell", "send", "reply",
            "proof", "sends", "not_looked_into",
        ),
        complaint=_text("What the customer says."),
        since=_maybe({**TIME, "description": "From when on it is said to have happened."}),
        until=_maybe({**TIME, "description": "Until when."}),
        at={**TIME, "description": "As of when this is judged."},
        cause=_text("One of a closed set.", enum=[str(one) for one in Finding]),
        sureness=_text("How sure that is.", enum=[str(one) for one in Sureness]),
        sentence=_text("The answer in one sentence."),
        next=_text("What to do."),
        would_tell=_maybe(_text("What would make it sure, or null.")),
        send=_maybe(_text("The send that it is about.", format="uuid")),
        reply=_text("What to answer the customer; nothing personal is in it."),
        proof={
            "type": "array",
            "items": _object(
                ("send", "row", "at", "what", "who", "detail"),
                send=_maybe(_text("The send of the row, or null for one beside all.", format="uuid")),
                row=_text("The row that proves it."), at=_maybe({**TIME}), what=_text("What it tells."),
                who=_text("Who did it, or empty."), detail=_text("More, or empty."),
            ),
        },
        sends={"type": "array", "items": {"type": "object"}, "description": "The sends around then, side by side."},
        not_looked_into={
            "type": "array",
            "items": _object(("what", "rests_on"), what=_text("A cause."), rests_on=_text("What it rests on.")),
            "description": "What the answer does not rule out.",
        },
    ),
    "BatchLine": _object(
        ("line", "status"),
        line={"type": "integer", "minimum": 1, "description": "The number of the line, from 1."},
        status={"type": "integer", "description": "As the answer to a single request would have it."},
        replayed={"type": "boolean"},
        send=_ref("Send"),
        problem=_ref("Problem"),
    ),
    "Alert": _object(
        ("id", "rule", "measure", "mailstream", "severity", "threshold", "value", "worst", "opened_at", "closed_at",
         "silenced", "notices"),
        id={"type": "integer"}, rule=_text("The rule that fired."),
        measure=_text("What it watches.", enum=_words(Measure)),
        mailstream=_maybe(_text("The only one it counts, or null for all.")),
        severity=_text("How urgent.", enum=_words(Severity)),
        threshold={"type": "number"}, value={"type": "number", "description": "When it fired."},
        worst={"type": "number"}, opened_at=TIME, closed_at=_maybe({**TIME, "description": "Null while it fires."}),
        silenced={"type": "boolean"},
        notices={"type": "object", "description": "How many were delivered, wait, or were given up; the last error."},
    ),
    "Rule": _object(
        ("measure", "threshold"),
        name=_text("Its name, from the path."), measure=_text("What it watches.", enum=_words(Measure)),
        threshold={"type": "number", "minimum": 0, "description": "Seconds, a share of one, or a number."},
        clears_at={"type": "number", "minimum": 0, "description": "Half of the threshold if not given."},
        for_seconds={"type": "number", "minimum": 0, "description": "How long it must stay so, either way; else 300."},
        over_seconds={"type": "number", "minimum": 60, "description": "What a rate is counted over; else 900."},
        least={"type": "integer", "minimum": 0, "description": "A rate of fewer counts as 0."},
        severity=_text("How urgent.", enum=_words(Severity)),
        mailstream=_maybe(_text("Only this one.")),
        enabled={"type": "boolean"}, state=_text("Where it stands.", enum=_words(AlertState)), since=TIME,
        value=_maybe({"type": "number", "description": "When it was last looked at."}),
    ),
    "Silence": _object(
        ("reason", "seconds"),
        id={"type": "integer"}, rule=_maybe(_text("Only this rule.")), mailstream=_maybe(_text("Only this one.")),
        seconds={"type": "number", "minimum": 60, "description": "How long, when it is made."}, until=TIME,
        reason=_text("Why.", maxLength=2000), who=_maybe(_text("Who made it.")),
    ),
    "Channel": _object(tuple(_CHANNEL), **_CHANNEL),
    "MadeChannel": _object(
        (*_CHANNEL, "secret"), **_CHANNEL,
        secret=_maybe(_text("By which a webhook's receiver checks signatures. Shown this once; null for other kinds.")),
    ),
    "NewChannel": _object(
        ("name", "kind"),
        name=_text("Lower-case letters, digits and -."), kind=_CHANNEL["kind"],
        url=_text("Of a webhook, or of one that takes Slack's messages.", maxLength=1000),
        addresses={"type": "array", "items": {"type": "string"}, "description": "Of people, for email."},
        least_severity=_CHANNEL["least_severity"],
    ),
    "Problem": _object(
        ("type", "title", "status", "detail"),
        type=_text("The page of this kind of problem.", format="uri"),
        title=_text("The kind of problem."),
        status={"type": "integer"},
        detail=_text("This problem."),
        field=_text("The field that cannot be taken."),
        send_id=_text("The send that has the key.", format="uuid"),
        first_seen={**TIME, "description": "When the key arrived first."},
        number=_text("Under which the fault is noted."),
    ),
}  # fmt: skip

WAIT = {
    "name": "wait", "in": "query", "required": False,
    "description": "Seconds to hold the answer back until the send is settled.",
    "schema": {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT},
}  # fmt: skip
KEY = {
    "name": "Idempotency-Key", "in": "header", "required": False,
    "description": "The key, quoted or bare, in place of the one in the body.", "schema": {"type": "string"},
}  # fmt: skip
ACCOUNT = {"name": "account", "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}
NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
NUMBER = {"name": "number", "in": "path", "required": True, "schema": {"type": "integer"}}

PATHS: dict[str, Schema] = {
    "/api/v1/sends": {
        "post": {
            "operationId": "requestSend",
            "summary": "Request one send",
            "description": "Safe to repeat: the same key makes one send, whatever happens between.",
            "parameters": [WAIT, KEY],
            "requestBody": {"required": True, "content": _json(_ref("Request"))},
            "responses": {
                "201": _answer("New.", _ref("Send"), Location="The send."),
                "200": _answer("Asked for before, and settled.", _ref("Send"), Idempotent_Replayed="true"),
                "202": _answer("Asked for before, and not settled yet.", _ref("Send"), Idempotent_Replayed="true"),
                "404": _problem("The workspace has no such mailstream."),
                "409": _problem("Recording waited too long for the same key.", Retry_After="Seconds."),
                "422": _problem("The key belongs to other content."),
                **TAKEN,
                **COMMON,
            },
        },
        "get": {
            "operationId": "findSends",
            "summary": "Find sends by their key",
            "parameters": [
                {"name": "key", "in": "query", "required": True, "schema": {"type": "string"}},
                {"name": "mailstream", "in": "query", "required": False, "schema": {"type": "string"}},
            ],
            "responses": {
                "200": _answer("One a mailstream that used the key.", _ref("Sends")), "400": TAKEN["400"], **COMMON,
            },
        },
    },
    "/api/v1/sends/batch": {
        "post": {
            "operationId": "requestSends",
            "summary": f"Request up to {MAX_LINES:,} sends as JSON lines",
            "description": "Each line is answered by one line, in their order; a bad line spoils no other.",
            "requestBody": {"required": True, "content": {kind: {"schema": _ref("Request")} for kind in JSON_LINES}},
            "responses": {"200": _answer("A line for each line.", _ref("BatchLine"), JSON_LINES[0]), **TAKEN, **COMMON},
        }
    },
    "/api/v1/sends/{id}": {
        "get": {
            "operationId": "readSend",
            "summary": "How one send stands",
            "parameters": [ID, WAIT],
            "responses": {
                "200": _answer("The send.", _ref("Send")), "400": TAKEN["400"],
                "404": _problem("No such send."), **COMMON,
            },
        }
    },
    "/api/v1/sends/{id}/trace": {
        "get": {
            "operationId": "traceSend",
            "summary": "Everything on record about one send, oldest first",
            "parameters": [ID],
            "responses": {"200": _answer("The trace.", _ref("Trace")), "404": _problem("No such send."), **COMMON},
        }
    },
    "/api/v1/markers": {
        "post": {
            "operationId": "addMarker",
            "summary": "Mark a deploy or an incident",
            "description": "Drawn into the charts. Not safe to repeat: each request marks once.",
            "requestBody": {"required": True, "content": _json(_ref("NewMarker"))},
            "responses": {"201": _answer("It is marked.", _object(("id",), id={"type": "integer"})), **TAKEN, **COMMON},
        },
        "get": {
            "operationId": "listMarkers",
            "summary": "The deploys and incidents of a time",
            "parameters": [
                {"name": name, "in": "query", "required": False, "schema": TIME, "description": what}
                for name, what in (("since", "Seven days before until, if left out."), ("until", "Now, if left out."))
            ],
            "responses": {"200": _answer("The newest first.", _ref("Markers")), "400": TAKEN["400"], **COMMON},
        },
    },
    "/api/v1/sends/{id}/cancel": {
        "post": {
            "operationId": "cancelSend",
            "summary": "Cancel a send",
            "description": "Safe to repeat. What an unanswered attempt may have sent is not called back.",
            "parameters": [ID],
            "requestBody": {"required": True, "content": _json(_ref("Reason"))},
            "responses": {
                "200": _answer("It is cancelled.", _ref("Cancellation"), Idempotent_Replayed="true, if it was before"),
                "202": _answer("A call is running: too late if it is taken.", _ref("Cancellation")),
                "404": _problem("No such send."),
                "409": _problem("It has come to another end, or somebody else holds it.", Retry_After="Seconds."),
                **TAKEN,
                **COMMON,
            },
        }
    },
    "/api/v1/alerts": {
        "get": {
            "operationId": "listAlerts",
            "summary": "What fired, the newest first",
            "parameters": [
                {"name": "open", "in": "query", "required": False, "schema": {"type": "boolean"}},
                {"name": "before", "in": "query", "required": False, "schema": {"type": "integer"}},
            ],
            "responses": {"200": _answer("Up to 200.", _list("alerts", "Alert")), "400": TAKEN["400"], **COMMON},
        }
    },
    "/api/v1/alerts/rules": {
        "get": {
            "operationId": "listAlertRules",
            "summary": "What is watched, and where each rule stands",
            "parameters": [],
            "responses": {"200": _answer("All.", _list("rules", "Rule")), **COMMON},
        }
    },
    "/api/v1/alerts/rules/{name}": {
        "put": {
            "operationId": "putAlertRule",
            "summary": "Make a rule, or replace it",
            "parameters": [NAME],
            "requestBody": {"required": True, "content": _json(_ref("Rule"))},
            "responses": {"200": _answer("As it is now.", _ref("Rule")), **TAKEN, **COMMON},
        },
        "delete": {
            "operationId": "removeAlertRule",
            "summary": "Watch for this no more",
            "parameters": [NAME],
            "responses": {"204": {"description": "It is gone."}, "404": _problem("No such rule."), **COMMON},
        },
    },
    "/api/v1/alerts/silences": {
        "get": {
            "operationId": "listSilences",
            "summary": "The silences that last",
            "parameters": [],
            "responses": {"200": _answer("All.", _list("silences", "Silence")), **COMMON},
        },
        "post": {
            "operationId": "silenceAlerts",
            "summary": "Tell nobody for a while",
            "parameters": [],
            "requestBody": {"required": True, "content": _json(_ref("Silence"))},
            "responses": {"201": _answer("It lasts.", _ref("Silence")), **TAKEN, **COMMON},
        },
    },
    "/api/v1/alerts/silences/{number}": {
        "delete": {
            "operationId": "endSilence",
            "summary": "Tell people again",
            "parameters": [NUMBER],
            "responses": {"204": {"description": "It has ended."}, "404": _problem("No such silence."), **COMMON},
        }
    },
    "/api/v1/alerts/channels": {
        "get": {
            "operationId": "listAlertChannels",
            "summary": "Who is told of alerts",
            "parameters": [],
            "responses": {"200": _answer("All.", _list("channels", "Channel")), **COMMON},
        },
        "post": {
            "operationId": "addAlertChannel",
            "summary": "Tell of alerts there, too; for tokens that act for an admin",
            "parameters": [],
            "requestBody": {"required": True, "content": _json(_ref("NewChannel"))},
            "responses": {"201": _answer("It is there.", _ref("MadeChannel")), **TAKEN, **COMMON},
        },
    },
    "/api/v1/alerts/channels/{name}": {
        "delete": {
            "operationId": "removeAlertChannel",
            "summary": "Tell nobody there any more; for tokens that act for an admin",
            "parameters": [NAME],
            "responses": {"204": {"description": "It is gone."}, "404": _problem("No such channel."), **COMMON},
        }
    },
    "/api/v1/alerts/channels/{name}/test": {
        "post": {
            "operationId": "testAlertChannel",
            "summary": "Have a worker send a test there",
            "parameters": [NAME],
            "responses": {
                "202": _answer("A worker sends it within seconds.", _ref("Channel")),
                "404": _problem("No such channel."),
                **COMMON,
            },
        }
    },
    "/api/v1/investigations": {
        "post": {
            "operationId": "investigate",
            "summary": "Find out what a complaint comes from",
            "description": "Over all that is known about the recipient or reference around a time. Nothing is changed.",
            "requestBody": {"required": True, "content": _json(_ref("Complaint"))},
            "responses": {"200": _answer("The answer, also if it is none.", _ref("Answer")), **TAKEN, **COMMON},
        }
    },
    "/webhooks/{account}": {
        "parameters": [ACCOUNT],
        "post": {
            "operationId": "receiveEvents",
            "summary": "For providers: events of an account",
            "security": [],
            "requestBody": {"required": True, "content": {"*/*": {"schema": {}}}},
            "responses": {
                "200": {"description": "Stored."},
                "401": {"description": "Not signed by the provider of this account; nothing was stored."},
                "404": {"description": "No such account."},
                "503": {"description": "Our trouble: come again."},
            },
        },
        "get": {
            "operationId": "probeWebhook",
            "summary": "For providers that look whether anybody is there",
            "security": [],
            "responses": {"200": {"description": "Somebody is."}, "404": {"description": "No such account."}},
        },
    },
    "/webhooks/{account}/replies": {
        "parameters": [ACCOUNT],
        "post": {
            "operationId": "receiveReply",
            "summary": "For providers: mail that came in at an account",
            "security": [],
            "requestBody": {"required": True, "content": {"*/*": {"schema": {}}}},
            "responses": {
                "200": {"description": "Taken, whether it answers an email or not."},
                "401": {"description": "Not from the provider of this account; nothing was stored."},
                "404": {"description": "No such account, or its provider hands in no mail."},
                "503": {"description": "Our trouble: come again."},
            },
        },
        "get": {
            "operationId": "probeReplies",
            "summary": "For providers that look whether anybody is there",
            "security": [],
            "responses": {"200": {"description": "Somebody is."}, "404": {"description": "No such account."}},
        },
    },
}  # fmt: skip


def document(public_url: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document of this installation."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sendonce",
            "version": __version__,
            "description": "One durable row for every email that somebody is meant to receive.",
        },
        "servers": [{"url": public_url}],
        "security": [{"token": []}],
        "paths": PATHS | openapi_held.PATHS | openapi_operations.PATHS,
        "components": {
            "schemas": SCHEMAS | openapi_held.SCHEMAS | openapi_operations.SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
