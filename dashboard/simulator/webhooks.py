"""Delivers events as the vendor does: signed, until it is content, on the documented schedule, several at once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from dashboard.simulator.config import Config
from dashboard.simulator.connection import settle
from dashboard.simulator.dialect import Dialect, Greeting, Reaction
from dashboard.simulator.dice import roll
from dashboard.simulator.events import Delivery, Mail, deliveries_of, is_disordered
from dashboard.simulator.post import Poster

OVERTAKE_WAIT_SECONDS = 1.0
"""An answer waits at most so long for the event that is to overtake it."""


class WebhookSender:
    """The pending deliveries, in memory, and the tasks that make them. Lives on the simulator's loop."""

    def __init__(self, config: Config, dialect: Dialect) -> None:
        self.counts: Counter[str] = Counter()
        self._config = config
        self._dialect = dialect
        self._greeted: str | None = None
        self._open = asyncio.Event()
        self._greeting: asyncio.Task[None] | None = None
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
        self._greet()

    def confirm(self) -> None:
        """The receiver has confirmed that it wants to be told."""
        self._open.set()

    def announce(self, mails: Sequence[Mail]) -> tuple[asyncio.Future[None], ...]:
        """Plan the calls about these messages of one send call. Returns what its answer has to wait for."""
        rates = self._config.webhooks
        if rates.url is None or not self._open.is_set():
            return ()
        waits: tuple[asyncio.Future[None], ...] = ()
        for mail in mails:
            calls = deliveries_of(mail, self._config, self._dialect.new_event_id)
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
        tasks = [*self._senders, *([self._greeting] if self._greeting is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
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
        reaction = self._dialect.reaction(await self._post(poster, delivery), delivery.fact)
        self._told_once(delivery)
        if reaction is Reaction.DONE:
            self.counts["acknowledged"] += 1
            self.counts["repeats"] += delivery.kind == "repeat"
            self.counts["other_ids"] += delivery.kind == "other_id"
            return
        self.counts["failed"] += 1
        retries = self._dialect.retries
        if reaction is Reaction.DROP or delivery.failures == len(retries):
            self.counts["given_up"] += 1
            return
        delivery.delay = retries[delivery.failures] * self._config.webhooks.time_scale
        delivery.failures += 1
        self._schedule(delivery)

    async def _post(self, poster: Poster, delivery: Delivery) -> int | None:
        """The status of the answer; None without one."""
        webhooks, fact, event_id, now = self._config.webhooks, delivery.fact, delivery.event_id, time.time()
        if webhooks.url is None:
            return None
        fact.at = min(fact.at, now)  # told before its time (a flush), it has happened by now
        if event_id not in fact.bodies:
            fact.bodies[event_id] = self._dialect.event_body(delivery.mail, fact, event_id, webhooks, now)
        body = fact.bodies[event_id]
        self.counts["sent"] += 1
        return await self._call(
            poster, "POST", webhooks.url, self._dialect.event_headers(event_id, body, webhooks, now), body
        )

    async def _call(self, poster: Poster, method: str, url: str, headers: Mapping[str, str], body: bytes) -> int | None:
        try:
            async with asyncio.timeout(self._config.webhooks.timeout_seconds):
                return await poster.call(method, url, headers, body)
        except (OSError, EOFError, TimeoutError):
            return None

    # ── greeting ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _greet(self) -> None:
        """Greet the address if it is new, as the vendor does; until then, and until it confirms, nothing is told."""
        webhooks = self._config.webhooks
        if not webhooks.greet or webhooks.url is None:
            self._open.set()
            return
        if webhooks.url == self._greeted:
            return
        self._greeted = webhooks.url
        self._open.clear()
        if self._greeting is not None:
            self._greeting.cancel()
        greetings = self._dialect.greetings(webhooks, time.time())
        self._greeting = asyncio.get_running_loop().create_task(self._greet_with(webhooks.url, greetings))

    async def _greet_with(self, url: str, greetings: Sequence[Greeting]) -> None:
        poster = Poster()
        try:
            answers = [await self._greet_until_taken(poster, url, each) for each in greetings]
            if all(answers) and not any(each.awaits_confirmation for each in greetings):
                self.confirm()
        finally:
            poster.close()

    async def _greet_until_taken(self, poster: Poster, url: str, greeting: Greeting) -> bool:
        """Whether it was answered with a 2xx in the end."""
        for wait in (*self._dialect.retries, None):
            self.counts["greetings"] += 1
            status = await self._call(poster, greeting.method, url, greeting.headers, greeting.body)
            if status is not None and 200 <= status < 300:
                return True
            if wait is not None:
                await asyncio.sleep(wait * self._config.webhooks.time_scale)
        return False
