"""What both protocols share: the settings of the moment, the books, the chances, and the one way to accept."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable

from dashboard.simulator import dice, recipients
from dashboard.simulator.books import Acceptance, Books
from dashboard.simulator.config import Config, Shares
from dashboard.simulator.dialect import Call, Dialect, Draft
from dashboard.simulator.events import Mail, story_of
from dashboard.simulator.keys import Keys
from dashboard.simulator.post import Poster
from dashboard.simulator.replies import HandIn, Wish, answer, apart
from dashboard.simulator.webhooks import WebhookSender

SMTP = "smtp"
"""The protocol that every simulator speaks beside its dialect."""


class Provider:
    """The state behind both servers. Lives on the simulator's loop; the books alone may be read from elsewhere."""

    def __init__(self, config: Config, books: Books, dialect: Dialect) -> None:
        self.config = config
        self.dialect = dialect
        self.books = books
        self.keys = Keys(dialect.key_window_seconds, books.rows)
        self.webhooks = WebhookSender(config, dialect)
        self.counts: Counter[str] = Counter()
        self.mails: OrderedDict[str, Mail] = OrderedDict()
        self._seen: Counter[str] = Counter()
        self._answers_free = asyncio.Event()
        self._held: asyncio.Future[None] | None = None
        self.configure(config)

    def configure(self, config: Config) -> None:
        """Take new settings; answers that are held leave if these say so."""
        self.config = config
        window = config.key_window_seconds
        self.keys.window_seconds = self.dialect.key_window_seconds if window is None else window
        self.webhooks.configure(config)
        if not config.hold_answers and self._held is not None:
            self._held.set_result(None)
            self._held = None

    @property
    def shared_secret(self) -> str:
        """What a receiver needs in order to verify events."""
        return self.dialect.shared_secret(self.config.webhooks)

    def reset(self) -> None:
        """Forget everything that was accepted, seen or is pending. The settings stay."""
        self.books.clear()
        self.keys.clear()
        self.webhooks.clear()
        self.counts.clear()
        self.mails.clear()
        self._seen.clear()

    def held(self) -> tuple[asyncio.Future[None], ...]:
        """What an answer must wait for while answers are held."""
        if not self.config.hold_answers:
            return ()
        if self._held is None:
            self._held = asyncio.get_running_loop().create_future()
        return (self._held,)

    def fault(self, protocol: str, identity: str, words: frozenset[str]) -> str | None:
        """What goes wrong with this call: by the recipient's words, else by chance. Counts the call."""
        chosen_by, rates = _SMTP if protocol == SMTP else _HTTP
        self._seen[identity] += 1
        occurrence = self._seen[identity]
        fault = chosen_by(words, occurrence)
        if fault is None:
            rolled = dice.roll(self.config.seed, protocol, identity, occurrence)
            fault = rates(self.config).pick(rolled)
        if fault is not None:
            self.counts[f"fault_{fault}"] += 1
        return fault

    def first_time(self, subject: str) -> bool:
        """Whether this is asked about the subject for the first time."""
        self._seen[subject] += 1
        return self._seen[subject] == 1

    def confirm(self) -> None:
        """The receiver of webhooks has confirmed that it wants to be told."""
        self.webhooks.confirm()

    def shown(self, now: float) -> list[Mail]:
        """What a look-up can find by now: the messages that came by HTTP, oldest first, after the set delay."""
        until = now - self.config.look_up_delay_ms / 1000
        return [mail for mail in self.mails.values() if mail.protocol != SMTP and mail.accepted_at <= until]

    def accept(self, call: Call, protocol: str = "") -> tuple[list[str], tuple[asyncio.Future[None], ...]]:
        """Take these messages for good. Returns their ids, and what the answer has to wait for (an event first)."""
        now = time.time()
        call_id = uuid.uuid4().hex
        ids = self.dialect.new_ids(call.drafts)
        rows = [
            Acceptance(
                message_id=ids[place],
                send_id=draft.send_id,
                key=call.key,
                recipient=", ".join(draft.to),
                at=now,
                protocol=protocol or self.dialect.name,
                call=call_id,
                item=place,
                endpoint=call.endpoint,
                fingerprint=call.fingerprint,
            )
            for place, draft in enumerate(call.drafts)
        ]
        self.books.add(rows)
        mails = [self._keep(row, draft) for row, draft in zip(rows, call.drafts, strict=True)]
        waits = self.webhooks.announce(mails) if protocol != SMTP else ()
        return ids, waits

    def answer(self, send_id: str, wish: Wish) -> HandIn:
        """How the vendor hands in what the recipient of this send answers. Raises ValueError where nobody can."""
        mail = next((mail for mail in reversed(self.mails.values()) if mail.identity == send_id), None)
        if mail is None:
            raise ValueError("no message of this send was accepted, or its content is forgotten")
        if self.dialect.hand_in is None:
            raise ValueError(f"{self.dialect.title} takes in no mail here")
        now = time.time()
        return self.dialect.hand_in(answer(mail, self.dialect.seen_as(mail), wish, now), self.config.webhooks, now)

    async def hand_in(self, request: HandIn) -> int:
        """Hand it in, once. Returns the status. Raises OSError or EOFError without one, ValueError for nowhere."""
        if self.config.webhooks.replies_url is None:
            raise ValueError("webhooks.replies_url is not set")
        url, credentials = apart(self.config.webhooks.replies_url)
        poster = Poster()
        try:
            return await poster.call("POST", url, {**request.headers, **credentials}, request.body)
        finally:
            poster.close()

    def _keep(self, row: Acceptance, draft: Draft) -> Mail:
        mail = Mail(
            message_id=row.message_id,
            protocol=row.protocol,
            identity=row.identity,
            copy=self.books.copies(row.identity),
            accepted_at=row.at,
            sender=draft.sender,
            to=draft.to,
            address=draft.address,
            subject=draft.subject,
            reply_to=draft.reply_to,
            text=draft.text,
            html=draft.html,
            metadata=draft.metadata,
            headers=draft.headers,
        )
        if row.protocol != SMTP:
            mail.story = story_of(mail, self.config, self.dialect.words, self.dialect.new_event_id, draft.fate)
        # Vendors that take the client's own Message-ID, or give one id to a whole call, have one id several times.
        self.mails[
            row.message_id if row.message_id not in self.mails else f"{row.message_id} {row.call} {row.item}"
        ] = mail
        while len(self.mails) > self.config.keep_content:
            self.mails.popitem(last=False)
        return mail


_Faults = tuple[Callable[[frozenset[str], int], str | None], Callable[[Config], Shares]]
_HTTP: _Faults = (recipients.http_fault, lambda config: config.http)
_SMTP: _Faults = (recipients.smtp_fault, lambda config: config.smtp)
