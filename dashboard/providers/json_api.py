"""What the JSON APIs of providers share: one POST of one body, and the order in which its answer is judged.

Their adapters say the rest: the body, the headers, the documented yes, and the table of their refusals.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeGuard

from dashboard.providers.base import Channel, Outcome, Outgoing, Settings
from dashboard.providers.http import NO_DEADLINE, HttpClient
from dashboard.providers.http_outcomes import Ruling, call_once, judge_by_table, outcome_of, unreadable
from dashboard.providers.reading import parsed_json
from dashboard.providers.results import Answer
from dashboard.providers.wire import credential, refusing
from dashboard.providers.wording import for_people, mailbox

LONGEST_ID = 200
"""Characters of an id or an error code. No provider promises longer ones."""

# ── the call ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class JsonChannel:
    """One account's connections to one endpoint."""

    client: HttpClient
    path: str
    headers: Callable[[Outgoing | None], Mapping[str, str]]
    """Of one send; or of a call for none."""
    fields: Callable[[Outgoing], Mapping[str, Any]]
    """The body of one send. Under an idempotency key nothing in it may depend on the attempt or on the time."""
    judge: Callable[[Answer], Outcome]
    nothing: Mapping[str, Any]
    """The body of a call that asks for no send."""

    def submit(self, outgoing: Outgoing) -> Outcome:
        """One POST, once."""
        headers = {**self.headers(outgoing), "Content-Type": "application/json"}
        return call_once(
            outgoing,
            write=lambda outgoing: json_bytes(self.fields(outgoing)),
            post=lambda body: self.client.post(self.path, headers=headers, body=body, submit_by=outgoing.deadline),
            judge=self.judge,
        )

    def try_out(self) -> Outcome:
        """The same POST, without a message; and without a key, which belongs to one send."""
        headers = {**self.headers(None), "Content-Type": "application/json"}
        body = json_bytes(dict(self.nothing))
        return outcome_of(self.client.post(self.path, headers=headers, body=body, submit_by=NO_DEADLINE), self.judge)

    def close(self) -> None:
        """Drop idle connections."""
        self.client.close()


def open_json_channel(
    settings: Settings,
    *,
    keys: tuple[str, ...],
    base_url: str | None,
    request_timeout: float,
    path: str,
    headers: Callable[[Outgoing | None], Mapping[str, str]],
    fields: Callable[[Outgoing], Mapping[str, Any]],
    judge: Callable[[Answer], Outcome],
    nothing: Mapping[str, Any] = MappingProxyType({}),
) -> Channel:
    """A channel for one account; with settings that cannot work, one that says so to every message.

    ``keys``: the settings that hold credentials. ``base_url``: where the API answers unless the account says otherwise.
    ``nothing``: the body of a call that asks for no send.
    """
    try:
        for name in keys:
            credential(settings, name)
        client = HttpClient(settings.get("base_url") or base_url or "", request_timeout=request_timeout)
    except ValueError as error:
        return refusing(str(error))
    return JsonChannel(client, path, headers, fields, judge, nothing)


def basic(user: str, password: str) -> str:
    """The value of ``Authorization`` for a name and a password (RFC 7617)."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def says_yes(value: str) -> bool:
    """A setting that is on. Only a clear yes counts: what depends on it would turn a safe repeat into a second send."""
    return value.strip().lower() in ("true", "yes", "on", "1")


# ── what goes out ────────────────────────────────────────────────────────────────────────────────────────────────────


def json_bytes(fields: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> bytes:
    """A body for the wire, the same bytes for the same fields."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def message_headers(outgoing: Outgoing) -> dict[str, str]:
    """The message's own headers in a fixed order, and ours, by which a person finds the send in a mailbox.

    One without a value says nothing, and some providers refuse it, so it stays out.
    """
    said = {name: value for name, value in sorted(outgoing.message.headers.items()) if value}
    return said | {"X-Send-Id": str(outgoing.send_id)}


def split_mailbox(text: str) -> tuple[str, str]:
    """(display name, bare address); a text that is no mailbox counts as an address, for the provider to refuse."""
    return mailbox(text) or ("", text)


def named(name: str | None, address: str, *, address_field: str = "email", name_field: str = "name") -> dict[str, str]:
    """A mailbox as an object, the name only where there is one."""
    return {address_field: address} | ({name_field: name} if name else {})


def marks(outgoing: Outgoing, *, attempt: bool) -> dict[str, str]:
    """Our identity as metadata.

    ``attempt``: the number of the attempt too, so that a second acceptance can be told from the first. Never under an
    idempotency key, where every attempt has the same bytes.
    """
    return {"send_id": str(outgoing.send_id)} | ({"attempt": str(outgoing.attempt)} if attempt else {})


# ── what came back ───────────────────────────────────────────────────────────────────────────────────────────────────


def said(answer: Answer) -> Any:
    """What the body says; None for what is no JSON."""
    try:
        return parsed_json(answer.body)
    except ValueError:
        return None


def code_of(value: str | None) -> str | None:
    """A provider's error code as it is kept."""
    return for_people(value or "", LONGEST_ID) or None


def is_id(value: str | None) -> TypeGuard[str]:
    """True for what can be a provider's id of a message."""
    return value is not None and len(value) <= LONGEST_ID


def judge_error(
    answer: Answer,
    rulings: Mapping[tuple[int, str], Ruling],
    *,
    body_read: bool,
    error_code: str | None,
    words: str = "",
) -> Outcome:
    """The outcome of an answer that is not the documented yes, a success status of another kind among them."""
    if 200 <= answer.status < 300:
        return unreadable(answer, "without the documented answer")
    return judge_by_table(answer, rulings, body_read=body_read, error_code=error_code, words=words)
