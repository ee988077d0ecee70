"""``sendonce demo``: a small company whose mail goes on for as long as somebody looks.

Everything is kept in one folder, and a second start goes on where the first one ended. Whatever ends by itself is
started again; whatever way the demo ends, nothing of it is left behind.
"""

from __future__ import annotations

import contextlib
import secrets
import shlex
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Self

from dashboard.demo.business import Business
from dashboard.demo.children import Child
from dashboard.demo.company import PEOPLE, Company, set_up
from dashboard.demo.examples import Example, find_examples
from dashboard.demo.queue import Warehouse
from dashboard.demo.stage import Books, Stage, StageError, free_port, is_free, write_private
from dashboard.ledger import access
from dashboard.ledger.accounts import read_account
from dashboard.ledger.database import Database
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import MailClass
from dashboard.producer.once import Ledger

TUNING = {
    "SENDONCE_LEASE_SECONDS": "8",
    "SENDONCE_SUBMIT_WINDOW_SECONDS": "3",
    "SENDONCE_REQUEST_TIMEOUT_SECONDS": "4",
    "SENDONCE_RETRY_SECONDS": "2",
    "SENDONCE_POLL_SECONDS": "0.25",
    "SENDONCE_IN_FLIGHT": "40",
    "SENDONCE_LANES": "1",
}
"""Shortened, so that one sees in a minute what else takes an hour, and quiet, so that the machine stays cool."""

SHORT = timedelta(seconds=12)
GRACES = {
    **dict.fromkeys(MailClass, SHORT),
    MailClass.TRANSACTIONAL: timedelta(seconds=45),  # long enough that one of them is unknown at almost any moment
}

BEHAVIOUR = {
    "http": {"accept_then_timeout": 0.002, "reset_after": 0.003, "http_500_taken": 0.002, "slow": 0.02},
    "smtp": {"reply_451": 0.01, "slow": 0.02},
    "fates": {"bounce": 0.008, "softbounce": 0.01, "complain": 0.002, "delay": 0.03, "open": 0.2, "click": 0.05},
    "slow_ms": 600.0,
}
WEBHOOKS = {
    "delay_ms": 900.0,
    "repeat": 0.08,
    "other_id": 0.02,
    "out_of_order": 0.1,
    "overtake": 0.03,
    "time_scale": 0.1,
}

TICK = 0.2
"""Seconds between two looks at what is due and at whether everything still runs."""

PATIENCE = 60.0
"""Seconds to wait for three things to look up, before fewer are shown."""

QUICK = 10.0
"""A part that ends sooner than so many seconds after its start did so for a reason that a new start will not cure."""


def show(folder: Path, *, port: int, workers: int, seed: int, say: Callable[[str], None]) -> None:
    """Run the demo until Ctrl-C or SIGTERM. Raises StageError when a part does not come up or the port is taken."""
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell started it in the background
        signal.signal(number, signal.default_int_handler)
    try:
        _play(folder, port=port, workers=workers, seed=seed, say=say)
    except KeyboardInterrupt:
        say("\nStopped. The next start goes on from here.")


def _play(folder: Path, *, port: int, workers: int, seed: int, say: Callable[[str], None]) -> None:
    _check_port(port)
    if not folder.exists():
        say("Setting up the demo; this takes a few seconds, once.")
    with Stage(folder, port=port, tuning=TUNING) as stage:
        parts = [_Part.started("web", lambda: stage.start("web", "web", "--port", str(stage.port)))]  # takes longest
        database = Database(stage.settings.database_url, pool_size=6, application_name="sendonce demo")
        try:
            company = _Company(stage, database)
            parts.append(_Part.started("simulator", lambda: _start_simulator(stage, company, seed)))
            stage.wait_for("simulator", f"{company.books.url}/_control/idle", parts[1].child)
            stage.wait_for("web", f"{stage.url}/readyz", parts[0].child)
            _announce(stage, company, say)
            parts += [_Part.started("worker", lambda: stage.start("worker", "worker")) for _ in range(workers)]
            _go_on(stage, company, parts, seed=seed, say=say)
        finally:
            database.close()


class _Company:
    """The company on this stage: its ledger, its provider, and who may look."""

    def __init__(self, stage: Stage, database: Database) -> None:
        self.database = database
        self.vault = Vault(stage.settings.encryption_keys)
        self.http_port, self.smtp_port = (_kept_port(stage, name) for name in ("http_port", "smtp_port"))
        self.password = stage.keep("password", _password)
        self.facts = self._set_up()
        self.token = stage.keep("api_token", self._new_token)
        self.books = Books(f"http://127.0.0.1:{self.http_port}")

    def _set_up(self) -> Company:
        with self.database.transaction() as connection:
            return set_up(
                connection, self.vault,
                http_url=f"http://127.0.0.1:{self.http_port}", smtp_port=self.smtp_port, keys_honoured=True,
                graces=GRACES, password=self.password,
            )  # fmt: skip

    def _new_token(self) -> str:
        with self.database.transaction() as connection:
            _, token = access.add_token(connection, workspace_id=self.facts.workspace_id, name="demo")
        return token

    def business(self, seed: int) -> Business:
        """What goes on here."""
        with self.database.transaction(durable=False) as connection:
            account = read_account(connection, self.vault, self.facts.accounts["resend"])
        assert account is not None
        warehouse = Warehouse(Ledger(self.database, self.vault), account.settings)
        return Business(self.database, warehouse, seed=seed)

    def examples(self, *, patient: bool) -> list[Example]:
        """What to look up first; nothing while one is ``patient`` and not all of it has come about."""
        with self.database.transaction(durable=False) as connection:
            return find_examples(connection, self.vault, self.facts.workspace_id, patient=patient)


# ── the parts ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Part:
    """A process of the demo, and how to start it again."""

    name: str
    start: Callable[[], Child]
    child: Child
    began: float

    @classmethod
    def started(cls, name: str, start: Callable[[], Child]) -> Self:
        """A part that starts now."""
        return cls(name, start, start(), time.monotonic())


def _start_simulator(stage: Stage, company: _Company, seed: int) -> Child:
    facts = company.facts
    webhooks = {
        **WEBHOOKS, "url": f"{stage.url}/webhooks/{facts.accounts['resend']}", "secret": facts.webhook_secret
    }  # fmt: skip
    return stage.start_simulator(
        http_port=company.http_port, smtp_port=company.smtp_port, seed=seed, keys_honoured=True,
        behaviour={**BEHAVIOUR, "webhooks": webhooks},
    )  # fmt: skip


def _look_after(stage: Stage, parts: list[_Part], say: Callable[[str], None]) -> None:
    """Start what has ended again."""
    for part in parts:
        code = part.child.poll()
        if code is None:
            continue
        if code > 0 and time.monotonic() - part.began < QUICK:
            raise StageError(f"the {part.name} keeps ending; see {stage.log_file(part.name)}")
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else "ended"
        say(f"The {part.name} {how}, and is started again.")
        stage.dismiss(part.child)
        part.child, part.began = part.start(), time.monotonic()


def _go_on(stage: Stage, company: _Company, parts: list[_Part], *, seed: int, say: Callable[[str], None]) -> None:
    business = company.business(seed)
    until = time.monotonic() + PATIENCE
    told = False
    try:
        while True:
            _look_after(stage, parts, say)
            business.step()
            if not told:
                patient = time.monotonic() < until
                examples = company.examples(patient=patient)
                told = bool(examples) or not patient
                if told:
                    _tell(examples, say)
            time.sleep(TICK)
    finally:
        for part in parts:
            if part.name == "worker":
                part.child.terminate()  # all at once; the stage waits for them
        business.close()
        with contextlib.suppress(OSError):  # where the simulator has gone by itself
            company.books.flush()  # what it has not told by its end is never told


# ── what is said ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _announce(stage: Stage, company: _Company, say: Callable[[str], None]) -> None:
    environment = stage.folder / "environment"
    variables = "\n".join(f"{name}={shlex.quote(value)}" for name, value in stage.environment.items())
    write_private(environment, variables + "\n")
    shown = environment.relative_to(Path.cwd()) if environment.is_relative_to(Path.cwd()) else environment
    logins = [login for login, _, _ in PEOPLE]
    say(
        f"""
  Sendonce runs at    {stage.url}
  Log in as           {", ".join(logins[:-1])} or {logins[-1]}
  Password            {company.password}

  API token           {company.token}
  API                 {stage.url}/docs
  Mailbox             {company.books.url} (the simulated provider: what it really took)
  Command line        set -a; . {shlex.quote(str(shown))}; set +a
"""
    )


def _tell(examples: list[Example], say: Callable[[str], None]) -> None:
    width = max((len(example.text) for example in examples), default=0)
    lines = [f"    {example.text:{width}}   {example.finds}" for example in examples]
    say("\n".join(["  Look up first, in the search box:", *lines, "", "  Ctrl-C ends it, and keeps everything."]))


# ── details ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_port(port: int, *, patience: float = 2.0) -> None:
    """A dashboard whose demo was just killed gets a moment to end."""
    until = time.monotonic() + patience
    while not is_free(port):
        if time.monotonic() > until:
            raise StageError(f"port {port} is in use: end what listens there, or choose another one with --port")
        time.sleep(0.1)


def _kept_port(stage: Stage, name: str) -> int:
    """The port of last time, so that links to the mailbox stay good; another one where somebody else has it now."""
    port = int(stage.keep(name, lambda: str(free_port())))
    return port if is_free(port) else free_port()


def _password() -> str:
    """Easy to read and to type, and still 60 bits."""
    syllables = [secrets.choice("bdfghjkmnprstvz") + secrets.choice("aeiou") for _ in range(10)]
    return "-".join("".join(syllables[i : i + 2]) for i in range(0, 10, 2))
