"""``sendonce verify``: the invariants, on a live database."""

from __future__ import annotations

import json
import os
from dataclasses import asdict

import click

from dashboard.cli.options import example, json_option
from dashboard.settings import read_database_url


@click.command(epilog=example("sendonce verify", "sendonce verify --json"))
@json_option
def verify(as_json: bool) -> int:
    """Check the invariants on a live database, without locks.

    Exit code 1 where one breaks, with the rows that break it. Needs DATABASE_URL only.
    """
    from dashboard.ledger.database import Database
    from dashboard.ledger.verify import Finding, verify

    database = Database(read_database_url(os.environ), pool_size=1, application_name="sendonce verify")
    try:
        with database.snapshot() as connection:
            findings = verify(connection)
    finally:
        database.close()

    def told(finding: Finding) -> list[str]:
        mark = "holds" if finding.holds else "BREAKS"
        lines = [f"{finding.invariant:2}  {mark:7} {finding.title}", f"            {finding.sees}"]
        lines += [f"            Only tests prove: {finding.only_tests}"]
        lines += [f"    {row.send_id or '-'}  {row.what}" for row in finding.rows]
        return [*lines, "    … and more"] if finding.more else lines

    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2, default=str))
    else:
        click.echo("\n".join(line for finding in findings for line in told(finding)))
    return 0 if all(finding.holds for finding in findings) else 1
