"""``sendonce enqueue``: requests from a file of JSON lines into the outbox."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any
from uuid import UUID

import click
import psycopg

from dashboard.cli import Mistake
from dashboard.cli.options import example, workspace_option
from dashboard.ledger.access import Refused, find_workspace
from dashboard.ledger.database import Connection, Database
from dashboard.ledger.requests import BadRequest, read_request
from dashboard.ledger.standing import known_mailstreams
from dashboard.settings import read_database_url

BATCH = 500
"""Lines of one transaction."""

MAX_LINE = 10_000_000
"""Bytes of one line."""


@dataclass(slots=True)
class Report:
    """What became of the lines."""

    shown: bool
    asked: int = 0
    failed: int = 0

    def fail(self, line: int, why: str) -> None:
        """Tell of a line that was not taken."""
        self.failed += 1
        click.echo(f"line {line}: {why}", err=True)

    def progress(self) -> None:
        """On a terminal, show how far it is."""
        if self.shown:
            click.echo(f"\r{self.asked + self.failed:,} lines", err=True, nl=False)


@click.command(
    epilog=example("sendonce enqueue receipts.jsonl", "zcat receipts.jsonl.gz | sendonce enqueue - --workspace shop")
)
@click.argument("file", type=click.File("rb"))
@workspace_option
def enqueue(file: IO[bytes], workspace: str) -> int:
    """Ask for the sends in FILE, one JSON object a line, with the fields of POST /api/v1/sends.

    A line that cannot be taken is reported with its number; the others are asked for all the same, and the exit code is
    1. Safe to repeat: a key that was asked for before is recorded as a duplicate. Needs DATABASE_URL only.
    """
    database = Database(read_database_url(os.environ), pool_size=1, application_name="sendonce enqueue")
    report = Report(shown=sys.stderr.isatty())
    try:
        with database.transaction(durable=False) as connection:
            workspace_id = find_workspace(connection, workspace)
        for lines in _batches(file):
            _ask(database, workspace, workspace_id, lines, report)
            report.progress()
    except Refused as error:
        raise Mistake(str(error)) from None
    finally:
        database.close()
    if report.shown:
        click.echo("", err=True)
    click.echo(f"{report.asked:,} asked for, {report.failed:,} not taken")
    return 1 if report.failed else 0


def _batches(file: IO[bytes]) -> Iterator[list[tuple[int, bytes]]]:
    lines: list[tuple[int, bytes]] = []
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        rest = line
        while len(line) > MAX_LINE and not rest.endswith(b"\n") and (rest := file.readline(MAX_LINE)):
            pass  # over the limit: its start is enough to say so
        if line.strip():
            lines.append((number, line))
        if len(lines) == BATCH:
            yield lines
            lines = []
    if lines:
        yield lines


def _ask(
    database: Database, workspace: str, workspace_id: UUID, lines: Sequence[tuple[int, bytes]], report: Report
) -> None:
    """Check the lines, and enqueue the good ones in one transaction; where the database refuses one, each by itself."""
    with database.transaction() as connection:
        good = _checked(connection, workspace, workspace_id, lines, report)
        try:
            with connection.transaction():
                _enqueue(connection, [request for _, request in good])
            report.asked += len(good)
        except psycopg.DataError:
            for number, request in good:
                _enqueue_one(connection, number, request, report)


def _checked(
    connection: Connection, workspace: str, workspace_id: UUID, lines: Sequence[tuple[int, bytes]], report: Report
) -> list[tuple[int, str]]:
    read: list[tuple[int, dict[str, Any]]] = []
    for number, line in lines:
        try:
            read.append((number, _read(line, workspace, workspace_id)))
        except BadRequest as error:
            report.fail(number, str(error))
    known = known_mailstreams(connection, workspace_id, {raw["mailstream"] for _, raw in read})
    good = []
    for number, raw in read:
        if raw["mailstream"] in known:
            good.append((number, json.dumps(raw, ensure_ascii=False)))
        else:
            report.fail(number, f"mailstream: the workspace {workspace} has none of this name")
    return good


def _read(line: bytes, workspace: str, workspace_id: UUID) -> dict[str, Any]:
    """A checked request, as it goes into the outbox. Raises BadRequest."""
    if len(line) > MAX_LINE:
        raise BadRequest("request", f"has more than {MAX_LINE:,} bytes")
    try:
        raw = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadRequest("request", f"is not JSON: {error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError):
        raise BadRequest("request", "is not JSON in UTF-8") from None
    read_request(raw, workspace_id=workspace_id, source="outbox", asked_at=datetime.now(UTC))
    if raw.get("workspace") not in (None, workspace):
        raise BadRequest("workspace", f"is not {workspace}: leave it out, or name it by --workspace")
    return {**raw, "workspace": workspace}


def _enqueue(connection: Connection, requests: Sequence[str]) -> None:
    connection.execute(
        "select count(sendonce.enqueue(request::jsonb)) from unnest(%s::text[]) as given (request)", [list(requests)]
    )


def _enqueue_one(connection: Connection, number: int, request: str, report: Report) -> None:
    try:
        with connection.transaction():
            _enqueue(connection, [request])
        report.asked += 1
    except psycopg.DataError as error:
        report.fail(number, f"the database refused it: {error.diag.message_primary}")
