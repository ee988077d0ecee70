"""Look up: ask providers about sends that are in doubt, also while they are held (DESIGN §5.6, §5.14).

What a provider shows under our own id is told to the ledger like an event of its webhook, and settles the send by the
same way. That it shows nothing settles nothing. Each worker asks for itself, less and less often for the same send.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from dashboard.ledger import events
from dashboard.ledger.database import Database, database_now
from dashboard.ledger.unanswered import Unanswered, read_unanswered
from dashboard.ledger.vault import Unreadable, Vault
from dashboard.lifecycle import By
from dashboard.outcomes import as_told
from dashboard.providers import PROVIDERS
from dashboard.providers.base import CannotLookUp, LooksUp, ProviderEvent, Question, boot_time
from dashboard.worker.submit import Moved, Submitter

FIRST_WAIT = timedelta(seconds=10).total_seconds()
LONGEST_WAIT = timedelta(hours=1).total_seconds()
"""Between two questions about one send: it doubles from the first to the longest."""
ACCOUNT_REST = timedelta(minutes=1).total_seconds()
"""How long an account is not asked after it gave no usable answer."""
PAGE = 500
MOST_REMEMBERED = 100_000
"""Sends whose questions are remembered; beyond that all are asked about anew."""

NOBODY = UUID(int=0)


class Asker:
    """Walks over the sends in doubt, again and again, and remembers when each was asked about. For one thread."""

    def __init__(self, database: Database, vault: Vault, submitter: Submitter) -> None:
        self._database = database
        self._vault = vault
        self._submitter = submitter
        self._page: list[Unanswered] = []
        self._after = NOBODY
        self._asked: dict[UUID, tuple[float, float]] = {}
        """When a send may be asked about next, and how long to wait after that."""
        self._rests: dict[UUID, float] = {}
        """Until when an account is not asked."""

    def ask_one(self) -> bool:
        """Ask about the next send that is due. False once all have been walked over."""
        if not self._page:
            self._turn()
        while self._page:
            one = self._page.pop(0)
            if self._is_due(one):
                self._ask(one)
                return True
        return self._after != NOBODY

    def _turn(self) -> None:
        """To the next page, or back to the first."""
        names = [known.name for known in PROVIDERS if known.capabilities({}).look_up]
        with self._database.transaction(durable=False) as connection:
            self._page = read_unanswered(connection, providers=names, after=self._after, limit=PAGE)
        self._after = self._page[-1].send_id if len(self._page) == PAGE else NOBODY
        if len(self._asked) > MOST_REMEMBERED:
            self._asked.clear()

    def _is_due(self, one: Unanswered) -> bool:
        now = boot_time()
        return self._asked.get(one.send_id, (0.0, 0.0))[0] <= now and self._rests.get(one.account_id, 0.0) <= now

    def _ask(self, one: Unanswered) -> None:
        _, wait = self._asked.get(one.send_id, (0.0, FIRST_WAIT))
        self._asked[one.send_id] = (boot_time() + wait, min(wait * 2, LONGEST_WAIT))
        try:
            channel = self._submitter.channel(one.account_id, one.endpoint)
            address = self._vault.decrypt(one.address, one.send_id.bytes).decode()
        except (Moved, LookupError, Unreadable):
            return
        if not isinstance(channel, LooksUp):  # its settings cannot work
            return
        try:
            found = channel.look_up(Question(send_id=one.send_id, address=address, since=one.since))
        except CannotLookUp:
            self._rests[one.account_id] = boot_time() + ACCOUNT_REST
            return
        if found:
            self._tell(one, found)

    def _tell(self, one: Unanswered, found: tuple[ProviderEvent, ...]) -> None:
        with self._database.transaction() as connection:
            events.ingest(
                connection, self._vault, workspace_id=one.workspace_id, account_id=one.account_id,
                told=[as_told(event) for event in found], received_at=database_now(connection),
                by=By.RECONCILE,
            )  # fmt: skip
