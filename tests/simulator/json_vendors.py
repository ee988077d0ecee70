"""Seven vendors as their documents show them: a good send call, where its answer has the id, where an error its code.

Written out here once more, and not taken from the simulator: its dialects are measured by this.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.simulator.client import Arrival, Client, Reply

SENDER, ADDRESS = "shop@example.test", "ada@example.test"
UUID = "0b6e7a52-6f0e-5a1c-9c55-0e7f5f3f1a10"
"""Our id: one vendor takes nothing but a UUID as a key."""


@dataclass(frozen=True, kw_only=True)
class Vendor:
    """One vendor's send call."""

    name: str
    path: str
    headers: Mapping[str, str]
    """With the credentials ``key``, and whatever else every call needs."""
    body: Callable[[str, str], Any]
    """(our id, recipient) → a body that breaks no rule."""
    message_id: Callable[[Any], object]
    """What a documented success says → the id of the message."""
    code: Callable[[Any], object]
    """What a documented error says → its code."""
    wrong_key: tuple[Mapping[str, str], int, object] = field(default=({}, 401, None))
    """Other headers with another key, and how they are refused."""
    yes: int = 200
    credential: str = "key"
    """As the simulator is told it."""

    def send(self, client: Client, to: str = ADDRESS, our_id: str = UUID, **changes: Any) -> Reply:
        """One call; ``changes`` are made on top of the body."""
        body = self.body(our_id, to)
        return self.call(client, {**body, **changes} if isinstance(body, dict) else body)

    def call(self, client: Client, body: Any, headers: Mapping[str, str] | None = None, timeout: float = 10) -> Reply:
        return client.call("POST", self.path, body, headers={**self.headers, **(headers or {})}, timeout=timeout)


def basic(credentials: str) -> str:
    return "Basic " + base64.b64encode(credentials.encode()).decode()


def errors_of(said: Any) -> Any:
    """The first error of the first message, or of the call."""
    return said["Messages"][0]["Errors"][0] if "Messages" in said else said


USESEND = Vendor(
    name="usesend",
    path="/api/v1/emails",
    headers={"authorization": "Bearer key"},
    body=lambda our_id, to: {
        "from": f"Shop <{SENDER}>", "to": to, "subject": "Hello", "text": "Hi", "headers": {"X-Send-Id": our_id}
    },
    message_id=lambda said: said["emailId"],
    code=lambda said: said["error"].get("code") or said["error"]["name"],
    wrong_key=({"authorization": "Bearer other"}, 403, "FORBIDDEN"),
)  # fmt: skip
POSTAL = Vendor(
    name="postal",
    path="/api/v1/send/message",
    headers={"x-server-api-key": "key"},
    body=lambda our_id, to: {
        "to": [to], "from": f"Shop <{SENDER}>", "subject": "Hello", "plain_body": "Hi", "tag": our_id
    },
    message_id=lambda said: next(iter(said["data"]["messages"].values()))["id"],
    code=lambda said: said["data"].get("code") or said["status"],
    wrong_key=({"x-server-api-key": "other"}, 200, "InvalidServerAPIKey"),
)  # fmt: skip
BREVO = Vendor(
    name="brevo",
    path="/v3/smtp/email",
    headers={"api-key": "key"},
    body=lambda our_id, to: {
        "sender": {"email": SENDER}, "to": [{"email": to}], "subject": "Hello", "textContent": "Hi",
        "headers": {"X-Mailin-custom": f'{{"send_id": "{our_id}"}}'},
    },
    message_id=lambda said: said["messageId"].strip("<>"),
    code=lambda said: said["code"],
    wrong_key=({"api-key": "other"}, 401, "unauthorized"),
    yes=201,
)  # fmt: skip
SPARKPOST = Vendor(
    name="sparkpost",
    path="/api/v1/transmissions/",
    headers={"authorization": "key"},
    body=lambda our_id, to: {
        "recipients": [{"address": {"email": to}, "metadata": {"send_id": our_id}}],
        "content": {"from": f"Shop <{SENDER}>", "subject": "Hello", "text": "Hi"},
    },
    message_id=lambda said: said["results"]["id"],
    code=lambda said: said["errors"][0].get("code"),
    wrong_key=({"authorization": "other"}, 401, None),
)
MAILJET = Vendor(
    name="mailjet",
    path="/v3.1/send",
    headers={"authorization": basic("key:secret")},
    body=lambda our_id, to: {
        "Messages": [{
            "From": {"Email": SENDER}, "To": [{"Email": to}], "Subject": "Hello", "TextPart": "Hi",
            "EventPayload": f'{{"send_id": "{our_id}"}}',
        }]
    },
    message_id=lambda said: said["Messages"][0]["To"][0]["MessageID"],
    code=lambda said: errors_of(said).get("ErrorCode"),
    wrong_key=({"authorization": basic("key:other")}, 401, "mj-0015"),
    credential="key:secret",
)  # fmt: skip
MANDRILL = Vendor(
    name="mandrill",
    path="/api/1.0/messages/send.json",
    headers={},
    body=lambda our_id, to: {
        "key": "key",
        "message": {
            "from_email": SENDER, "to": [{"email": to}], "subject": "Hello", "text": "Hi",
            "metadata": {"send_id": our_id},
        },
    },
    message_id=lambda said: said[0]["_id"],
    code=lambda said: (said[0]["reject_reason"] or said[0]["status"]) if isinstance(said, list) else said["name"],
)  # fmt: skip
MAILTRAP = Vendor(
    name="mailtrap",
    path="/api/send",
    headers={"authorization": "Bearer key"},
    body=lambda our_id, to: {
        "from": {"email": SENDER}, "to": [{"email": to}], "subject": "Hello", "text": "Hi",
        "custom_variables": {"send_id": our_id},
    },
    message_id=lambda said: said["message_ids"][0],
    code=lambda said: "errors" if said["success"] is False and said["errors"] else None,
    wrong_key=({"authorization": "Bearer other"}, 401, "errors"),
)  # fmt: skip

VENDORS = (USESEND, POSTAL, BREVO, SPARKPOST, MAILJET, MANDRILL, MAILTRAP)
BY_NAME = {vendor.name: vendor for vendor in VENDORS}


def without(body: Any, *path: str | int) -> Any:
    """A copy of what a body says without what stands there."""
    return changed(body, path, ...)


def changed(body: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy of what a body says with another value there (… takes it away)."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(body, list):
        return [changed(each, rest, value) if place == key else each for place, each in enumerate(body)]
    inner = changed(body.get(key), rest, value) if rest else value
    return {name: each for name, each in {**body, key: inner}.items() if each is not ...}


def authorization(arrival: Arrival) -> str:
    """``user:password`` of a request."""
    scheme, _, encoded = arrival.headers["authorization"].partition(" ")
    assert scheme == "Basic"
    return base64.b64decode(encoded).decode()
