"""``python -m bench.overview``: how long the overview takes over ten thousand sends and over very many.

Two ledgers on one server, each with thirty days of mail, the same few open sends, and roll-ups that Sendonce has
counted itself. The pages are asked of the real application, in turn on one ledger and on the other; only the ratio of
the two means anything. It should stay below 1.3, since the overview reads nothing that grows with the number of sends.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flask import Flask
from flask.testing import FlaskClient

from bench import generated
from bench.finding import KEYS, SERVER, VAULT
from bench.plans import HOT, ran
from bench.product import prepare
from dashboard.embedded.postgres import EmbeddedPostgres
from dashboard.ledger import rollups
from dashboard.ledger.access import add_person, put_role
from dashboard.ledger.database import Database
from dashboard.ledger.streams import save_stream
from dashboard.ledger.tables import Role
from dashboard.lifecycle import MailClass
from dashboard.settings import Settings
from dashboard.web import create_app

FEW = 10_000
MONTH = timedelta(days=30)
BACKLOG = 5_000
"""Of so many newest sends one in fifty is open, in either ledger."""
TARGET = 1.3
PAGES = [f"/overview{part}?range={span}" for part in ("", "/figures") for span in ("1h", "24h", "7d", "30d")]
PASSWORD = "correct horse battery"


@dataclass
class Ledger:
    """A filled ledger, and a browser that is logged in to the application on it."""

    database: Database
    app: Flask
    client: FlaskClient
    took: dict[str, list[float]] = field(default_factory=lambda: {page: [] for page in PAGES})
    """Of each page: seconds of server time."""

    def ask(self, page: str) -> None:
        """Ask for it once."""
        began = time.perf_counter()
        answer = self.client.get(page)
        self.took[page].append(time.perf_counter() - began)
        assert answer.status_code == 200, page

    def median(self, page: str) -> float:
        """Its server time in milliseconds."""
        return statistics.median(self.took[page]) * 1_000


def main() -> None:
    """Fill both, roll up, measure in turn, print."""
    parser = argparse.ArgumentParser(prog="python -m bench.overview", description=__doc__)
    parser.add_argument("--sends", type=int, default=10_000_000)
    parser.add_argument("--repetitions", type=int, default=21)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sendonce-bench-") as folder:
        Path(folder).chmod(0o711)
        with EmbeddedPostgres(folder, settings=SERVER) as server:
            few, many = _filled(server.url("few"), FEW), _filled(server.url("many"), given.sends)
            for repetition in range(given.repetitions + 1):
                for page in PAGES:
                    for ledger in (few, many) if repetition % 2 else (many, few):
                        ledger.ask(page)
            for page in PAGES:
                for ledger in (few, many):
                    ledger.took[page].pop(0)  # the first time templates are compiled and statements planned
            _tell(few, many, given.sends)
            for ledger in (few, many):
                _only_small_tables(ledger)
                ledger.database.close()


def _filled(url: str, sends: int) -> Ledger:
    began = time.monotonic()
    prepare(url, 0)
    database = Database(url, pool_size=1)
    connection = database.connect()
    row = connection.execute("select w.id, a.id from sendonce.workspaces w, sendonce.accounts a").fetchone()
    assert row is not None
    workspace, account = row
    save_stream(
        connection, workspace_id=workspace, name="welcome", mail_class=MailClass.TRANSACTIONAL, account_id=account
    )
    person = add_person(connection, login="ada", name="Ada", password=PASSWORD)
    put_role(connection, user_id=person, workspace_id=workspace, role=Role.OPERATOR)
    generated.fill(
        connection, VAULT, workspace=workspace, account=account, sends=sends, began=datetime.now(UTC) - MONTH,
        apart=MONTH / sends, backlog=BACKLOG,
    )  # fmt: skip
    connection.commit()
    filled = time.monotonic()
    connection.autocommit = True
    connection.execute("vacuum analyze")
    _roll_up(database)
    connection.execute("vacuum analyze")
    connection.close()
    counted = time.monotonic()
    print(f"{sends:,} sends: filled in {filled - began:.0f} s, rolled up in {counted - filled:.0f} s", flush=True)
    database.close()
    database = Database(url, pool_size=1)  # in whose session nothing but pages is asked for
    app = create_app(Settings(database_url=url, secret_key="b" * 40, encryption_keys=KEYS), database, VAULT)
    return Ledger(database, app, _logged_in(app))


def _roll_up(database: Database) -> None:
    """As ``sendonce rollups rebuild`` and the workers do it."""
    with database.transaction() as connection:
        rollups.mark_all(connection)
    taken = True
    while taken:
        with database.transaction(durable=False) as connection:
            taken = rollups.roll_up(connection, limit=5_000) > 0


def _logged_in(app: Flask) -> FlaskClient:
    client = app.test_client()
    token = re.search(r'name="csrf_token" value="([^"]+)"', client.get("/login").text)
    assert token is not None
    answer = client.post("/login", data={"csrf_token": token[1], "login": "ada", "password": PASSWORD})
    assert answer.status_code == 303
    return client


def _tell(few: Ledger, many: Ledger, sends: int) -> None:
    print(f"server time, medians in milliseconds: over {FEW:,} sends, over {sends:,}, and their ratio")
    for page in PAGES:
        print(
            f"{page:<32} {few.median(page):8.1f} {many.median(page):8.1f} {many.median(page) / few.median(page):6.2f}"
        )
    ratio = sum(map(many.median, PAGES)) / sum(map(few.median, PAGES))
    print(f"all of them: {ratio:.2f}, which is {'within' if ratio <= TARGET else 'over'} the {TARGET} that are allowed")


def _only_small_tables(ledger: Ledger) -> None:
    """Raises AssertionError where a page read something that grows with the mail, but for what is open."""
    with ledger.database.snapshot() as connection:
        for one in ran(connection):
            assert not one.read & (HOT - {"work"}), one.statement


if __name__ == "__main__":
    main()
