"""Delivers events as Svix does for Resend: signed, until a 2xx, on the documented schedule, several at once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

from dashboard.simulator.config import Config
from dashboard.simulator.connection import settle
from dashboard.simulator.dice import roll
from dashboard.simulator.events import Delivery, Mail, body_of, deliveries_of, is_disordered, signed_headers
from dashboard.simulator.post import Poster

RETRY_AFTER_SECONDS = (5, 300, 1_800, 7_200, 18_000, 36_000, 36_000)
"""After each failure in turn; after the last the event is given up (Resend, "Retries and Replays")."""

OVERTAKE_WAIT_SECONDS = 1.0
"""An answer waits at most so long for the event that is to overtake it."""


class WebhookSender:
    """The pending deliveries, in memory, and the tasks that make them. Lives on the simulator's loop."""

    def __init__(self, config: Config) -> None:
        self.counts: Counter[str] = Counter()
        self._config = config
        self._timers: dict[int, tuple[asyncio.TimerHandle, Delivery]] = {}
        self._ready: asyncio.PriorityQueue[tuple[int, int, Delivery]] = asyncio.PriorityQueue()
        self._told: dict[int, asyncio.Future[None]] = {}
        self._number = 0
        self._in_flight = 0
        self._idle: list[asyncio.Future[None]] = []
        self._running = asyncio.Event()
        self.configure(config)
        loop = asyncio.get_running_loop()
        self._senders = [loop.create_task(self._send_for_ever()) for _ in range(config.webhooks.concurrency)]

    @property
    def pending(self) -> int:
        """Deliveries that are due, not due yet, or in flight."""
        return len(self._timers) + self._ready.qsize() + self._in_flight

    def configure(self, config: Config) -> None:
        """Take new settings: they count from the next delivery on."""
        self._config = config
        if config.webhooks.paused:
            self._running.clear()
        else:
            self._running.set()

    def announce(self, mails: Sequence[Mail]) -> tuple[asyncio.Future[None], ...]:
        """Plan the calls about these messages of one send call. Returns what its answer has to wait for."""
        rates = self._config.webhooks
        if rates.url is None:
            return ()
        waits: tuple[asyncio.Future[None], ...] = ()
        for mail in mails:
            calls = deliveries_of(mail, self._config)
            if not calls:
                continue
            self.counts["events"] += len(mail.story)
            self.counts["out_of_order"] += is_disordered(mail, self._config)
            if not waits and roll(self._config.seed, "overtake", mail.identity, mail.copy) < rates.overtake:
                waits = (self._overtake(min(calls, key=lambda call: call.delay)),)
            for call in calls:
                self._schedule(call)
        return waits

    def flush(self) -> int:
        """Make everything due now, in the order in which it would have been. Returns how many calls that is."""
        waiting = sorted(self._timers.values(), key=lambda each: each[0].when())
        self._timers.clear()
        for timer, delivery in waiting:
            timer.cancel()
            self._put(delivery)
        return len(waiting)

    def clear(self) -> None:
        """Forget what is pending (not what is in flight) and all counts."""
        for timer, _ in self._timers.values():
            timer.cancel()
        self._timers.clear()
        while not self._ready.empty():
            self._told_once(self._ready.get_nowait()[2])
        self.counts.clear()
        self._check_idle()

    def when_idle(self) -> asyncio.Future[None]:
        """Done as soon as nothing is pending."""
        future = asyncio.get_running_loop().create_future()
        self._idle.append(future)
        self._check_idle()
        return future

    async def stop(self) -> None:
        """End all tasks; pending deliveries are lost."""
        for sender in self._senders:
            sender.cancel()
        await asyncio.gather(*self._senders, return_exceptions=True)
        for timer, _ in self._timers.values():
            timer.cancel()

    # ── planning ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _overtake(self, delivery: Delivery) -> asyncio.Future[None]:
        """Tell this one first. The future is done after its first try, or when the answer cannot wait longer."""
        self.counts["overtaking"] += 1
        delivery.delay = 0.0
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._told[id(delivery)] = future
        loop.call_later(OVERTAKE_WAIT_SECONDS, self._told_once, delivery)
        return future

    def _schedule(self, delivery: Delivery) -> None:
        if delivery.delay <= 0:
            self._put(delivery)
            return
        number = self._next()
        timer = asyncio.get_running_loop().call_later(delivery.delay, self._due, number)
        self._timers[number] = (timer, delivery)

    def _due(self, number: int) -> None:
        self._put(self._timers.pop(number)[1])

    def _put(self, delivery: Delivery) -> None:
        urgency = 0 if id(delivery) in self._told else 1
        self._ready.put_nowait((urgency, self._next(), delivery))

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _told_once(self, delivery: Delivery) -> None:
        future = self._told.pop(id(delivery), None)
        if future is not None:
            settle(future)

    def _check_idle(self) -> None:
        if self.pending == 0:
            for future in self._idle:
                settle(future)
            self._idle.clear()

    # ── sending ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _send_for_ever(self) -> None:
        poster = Poster()
        try:
            while True:
                await self._running.wait()
                entry = await self._ready.get()
                if not self._running.is_set():  # paused while this sender waited
                    self._ready.put_nowait(entry)
                    continue
                self._in_flight += 1
                await self._tell(poster, entry[2])
                self._in_flight -= 1
                self._check_idle()
        finally:
            poster.close()

    async def _tell(self, poster: Poster, delivery: Delivery) -> None:
        acknowledged = await self._post(poster, delivery)
        self._told_once(delivery)
        if acknowledged:
            self.counts["acknowledged"] += 1
            self.counts["repeats"] += delivery.kind == "repeat"
            self.counts["other_ids"] += delivery.kind == "other_id"
            return
        self.counts["failed"] += 1
        if delivery.failures == len(RETRY_AFTER_SECONDS):
            self.counts["given_up"] += 1
            return
        delivery.delay = RETRY_AFTER_SECONDS[delivery.failures] * self._config.webhooks.time_scale
        delivery.failures += 1
        self._schedule(delivery)

    async def _post(self, poster: Poster, delivery: Delivery) -> bool:
        webhooks = self._config.webhooks
        if webhooks.url is None:
            return False
        now = time.time()
        body = body_of(delivery.mail, delivery.fact, now)
        headers = {
            "content-type": "application/json",
            "user-agent": "Svix-Webhooks/simulator",
            **signed_headers(webhooks, delivery.event_id, body, now),
        }
        self.counts["sent"] += 1
        try:
            async with asyncio.timeout(webhooks.timeout_seconds):
                return 200 <= await poster.post(webhooks.url, headers, body) < 300
        except (OSError, EOFError, TimeoutError):
            return False
