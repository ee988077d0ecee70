"""What to look up first: sends that have really come about, found in the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

from dashboard.ledger.database import Connection
from dashboard.ledger.vault import Vault


@dataclass(frozen=True, slots=True)
class Example:
    """Something to type into the search box, and what one will find."""

    text: str
    finds: str


ENOUGH = 3

_TWICE = """
    select s.trigger_id from sendonce.duplicates d join sendonce.sends s on s.id = d.send_id
    where s.workspace_id = %(workspace)s and s.mailstream = 'receipts' and d.trigger_type <> s.trigger_type
      and d.verdict <> 'mismatch' and s.delivery = 'delivered'
    order by d.at desc limit 1
"""
_HELD = """
    select s.recipient_id from sendonce.holds h join sendonce.sends s on s.id = h.send_id
    where h.workspace_id = %(workspace)s and h.closed_at is null and h.reason = 'unconfirmed'
    order by h.opened_at desc limit 1
"""
_SUPPRESSED = """
    select v.send_id, m.address from sendonce.moves v join sendonce.messages m on m.send_id = v.send_id
    where v.workspace_id = %(workspace)s and v.to_state = 'suppressed' and v.reason = 'bounced_before'
      and m.address is not null
    order by v.at desc limit 1
"""
_REDELIVERED = """
    select s.trigger_id from sendonce.duplicates d join sendonce.sends s on s.id = d.send_id
    where s.workspace_id = %(workspace)s and s.run_by = 'caller' and s.state = 'accepted'
    order by d.at desc limit 1
"""


def find_examples(connection: Connection, vault: Vault, workspace_id: UUID, *, patient: bool) -> list[Example]:
    """The newest example of each kind that has come about, the most telling kinds first; at most three.

    None at all while one is ``patient`` and one of the first three kinds is still to come.
    """

    def newest(query: LiteralString) -> tuple[object, ...] | None:
        return connection.execute(query, {"workspace": workspace_id}).fetchone()

    def example(query: LiteralString, finds: str) -> Example | None:
        row = newest(query)
        return Example(str(row[0]), finds) if row else None

    def suppressed(query: LiteralString, finds: str) -> Example | None:
        match newest(query):
            case (UUID() as send_id, bytes() as address):
                return Example(vault.decrypt(address, send_id.bytes).decode(), finds)
        return None

    found = [
        example(_TWICE, "an order whose receipt two triggers asked for, and that got one email"),
        example(_HELD, "the provider never answered: held until an operator decides"),
        suppressed(_SUPPRESSED, "the first email bounced, so the second one was suppressed"),
        example(_REDELIVERED, "a queue delivered this job twice, and one email left"),
    ]
    if patient and None in found[:ENOUGH]:
        return []
    return [one for one in found if one is not None][:ENOUGH]
