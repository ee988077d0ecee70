"""The sends behind a point of a chart: those of which something happened in a span of time.

Each figure of a roll-up has its rows here, found by the same times as the roll-up counts them by. A span is as long as
one bucket of a chart, and its rows are read whole: each send by the last of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, func, select

from dashboard.ledger.tables import attempts, duplicates, events, moves, sends


class Behind(StrEnum):
    """What happened to a send."""

    DELIVERED_AGAIN = "delivered_again"
    DOUBTED = "doubted"
    CLAIM_LAPSED = "claim_lapsed"
    RECORDED = "recorded"
    NOT_ACCEPTED = "not_accepted"  # due, and neither accepted nor stopped: the gap
    TRIED = "tried"
    REPORTED = "reported"  # delivered, bounced or complained about


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What, and when. ``account_id`` narrows what was done by one provider account, not what was asked for."""

    what: Behind
    since: datetime
    until: datetime
    account_id: UUID | None = None


def sends_behind(span: Span, workspace_id: UUID, mailstream: str | None) -> Select[Any]:
    """The ids of the sends with the time of the last thing that happened to each, as ``send_id`` and ``at``."""
    at, more = _rows_of(span)
    table: Any = at.table
    send_id = sends.c.id if table is sends else table.c.send_id
    query = select(send_id.label("send_id"), func.max(at).label("at"))
    if mailstream is not None and "mailstream" in table.c:
        more.append(table.c.mailstream == mailstream)
    elif mailstream is not None:
        query = query.join(sends, sends.c.id == send_id).where(sends.c.mailstream == mailstream)
    in_span = (table.c.workspace_id == workspace_id, at >= span.since, at < span.until)
    return query.where(*in_span, *more).group_by(send_id)


def _rows_of(span: Span) -> tuple[Any, list[ColumnElement[bool]]]:
    """The time by which the rows are found, and what else is asked of them."""
    match span.what:
        case Behind.DELIVERED_AGAIN:
            return duplicates.c.at, []
        case Behind.DOUBTED:
            return attempts.c.doubted_at, _by(span, attempts.c.account_id)
        case Behind.TRIED:
            return attempts.c.started_at, _by(span, attempts.c.account_id)
        case Behind.CLAIM_LAPSED:
            return moves.c.at, [moves.c.made_by == "sweep"]
        case Behind.REPORTED:
            told = events.c.event_type.in_(["delivered", "bounced", "complained"])
            return events.c.occurred_at, [told, *_by(span, events.c.account_id)]
        case Behind.RECORDED:
            return sends.c.recorded_at, []
        case Behind.NOT_ACCEPTED:
            return sends.c.due_at, [sends.c.state.in_(["open", "failed"])]


def _by(span: Span, account: Any) -> list[ColumnElement[bool]]:
    return [] if span.account_id is None else [account == span.account_id]
