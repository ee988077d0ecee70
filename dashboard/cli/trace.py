"""``sendonce trace``: what the search box and the trace page say, for terminals and programs."""

from __future__ import annotations

import json
import os
from datetime import datetime

import click

from dashboard.cli import Mistake
from dashboard.cli.options import example, json_option, workspace_option
from dashboard.insight.folding import Entry, silences
from dashboard.insight.timeline import exact, timeline
from dashboard.insight.verdict import verdict
from dashboard.insight.wording import span
from dashboard.ledger.access import Refused, find_workspace
from dashboard.ledger.database import Connection, Database, database_now
from dashboard.ledger.search import Hit, exact_hit, search, search_close
from dashboard.ledger.trace import Trace, read_trace
from dashboard.ledger.vault import Vault
from dashboard.settings import read_settings


@click.command(epilog=example("sendonce trace order_84721", "sendonce trace ada@example.com --json"))
@click.argument("anything")
@workspace_option
@json_option
def trace(anything: str, workspace: str, as_json: bool) -> int:
    """Tell what became of a send.

    ANYTHING is an address, a recipient id, a trigger id or the number in one, a key or the start of one, a send id, a
    Message-ID, an exact subject, a ticket's number, or the id of a provider's message or event. Several sends are
    listed. Nothing found: exit code 1, and what is close to it is listed.
    """
    settings = read_settings(os.environ)
    database = Database(settings.database_url, pool_size=1, application_name="sendonce trace")
    try:
        with database.snapshot() as connection:
            return _tell(connection, Vault(settings.encryption_keys), workspace, anything, as_json)
    except Refused as error:
        raise Mistake(str(error)) from None
    finally:
        database.close()


def _tell(connection: Connection, vault: Vault, workspace: str, anything: str, as_json: bool) -> int:
    workspace_id = find_workspace(connection, workspace)
    hits = search(connection, vault, workspace_id, anything)
    hit = exact_hit(hits) or (hits[0] if len(hits) == 1 else None)
    found = read_trace(connection, workspace_id, hit.send_id) if hit else None
    if found is not None:
        click.echo(_json(timeline(found)) if as_json else _text(found, database_now(connection)))
        return 0
    close = [] if hits else search_close(connection, vault, workspace_id, anything)
    listed = [_listed(hit) for hit in hits or close]
    click.echo(json.dumps(listed, indent=2) if as_json else _list(hits, close))
    return 0 if hits else 1


def _text(found: Trace, now: datetime) -> str:
    judged = verdict(found, now)
    lines = [judged.sentence, f"{judged.sureness.replace('_', ' ')} · {judged.next}", ""]
    lines += [f"{found.send.mailstream} · {found.send.key}", f"send {found.send.id}, {found.state}", ""]
    entries = timeline(found)
    *before, after = silences(entries, now)
    for entry, silence in zip(entries, before, strict=True):
        lines += [f"{'':<22}{span(silence)} of silence"] if silence else []
        lines.append(_line(entry))
    lines += [f"{'':<22}{span(after)} without anything, until now"] if after else []
    return "\n".join(lines)


def _line(entry: Entry) -> str:
    mark = "!" if entry.trouble else " "
    times = f" ×{entry.count}" if entry.count > 1 else ""
    until = f"the last at {entry.until:%Y-%m-%d %H:%M:%S}" if entry.until else ""
    phases = ", ".join(f"{phase.name} {exact(phase.length)}" for phase in entry.phases)
    about = " · ".join(filter(None, (entry.who, entry.detail, until, phases if len(entry.phases) > 1 else "")))
    return f"{entry.at:%Y-%m-%d %H:%M:%S} {mark} {entry.lane:<9} {entry.what}{times}" + (f" · {about}" if about else "")


def _json(entries: list[Entry]) -> str:
    fields = ("lane", "what", "who", "detail", "evidence", "trouble", "count")
    return json.dumps(
        [{"at": entry.at.isoformat(), **{name: getattr(entry, name) for name in fields}} for entry in entries], indent=2
    )


def _list(hits: list[Hit], close: list[Hit]) -> str:
    if not hits and not close:
        return "Nothing is known by that. Try an address, an order id, a key, or an id of the provider's."
    many = f"{len(hits)} sends match; trace one of them by its id:"
    lines = [many if hits else "Nothing is called exactly that. Close to it:"]
    hits = hits or close
    return "\n".join(
        lines + [f"{h.send_id}  {h.state:<10} {h.recorded_at:%Y-%m-%d %H:%M}  {h.key}  ({h.reading})" for h in hits]
    )


def _listed(hit: Hit) -> dict[str, str]:
    return {
        "send_id": str(hit.send_id),
        "mailstream": hit.mailstream,
        "key": hit.key,
        "state": hit.state,
        "reading": hit.reading,
        "recorded_at": hit.recorded_at.isoformat(),
    }
