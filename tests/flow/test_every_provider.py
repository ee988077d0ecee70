"""Every provider with the real worker, web and ledger over real sockets: which state each end of a call leaves, and
that a call which was accepted and never answered is settled without a person, by the evidence that there is."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from dashboard.identity import send_id
from dashboard.insight.timeline import timeline
from dashboard.ledger.accounts import save_account
from dashboard.ledger.trace import read_trace
from dashboard.providers import provider
from dashboard.providers.base import endpoint
from dashboard.settings import Settings
from dashboard.simulator import Config, Simulator
from dashboard.web import create_app
from dashboard.worker.process import LOOPS, Worker
from tests.crew import until, violations
from tests.flow.town import SECRET
from tests.place import KEYS, Place
from tests.providers.dialects import PLAYED, Played
from tests.serving import served

NEVER = 1e9
"""A look-up that shows nothing for so many milliseconds shows nothing at all."""

IN_DOUBT = {"timeout", "silent", "lost", "reset", "error", "garbage"}
SILENT = {"timeout", "silent"}
TAKEN = {"timeout", "lost", "garbage"}
"""Those in doubt that the provider took all the same."""


@dataclass
class Desk:
    """An installation whose receipts go out by one provider, as the simulator plays it."""

    place: Place
    played: Played
    simulator: Simulator
    account: UUID

    def news(self, word: str, number: int = 3) -> dict[str, UUID]:
        """Ask for news to so many recipients who choose this story; their ids."""
        names = [f"{word}{n}" for n in range(number)]
        with self.place.database.transaction() as connection:
            for name in names:
                request = {
                    "mailstream": "news", "key": f"news:{name}",
                    "recipient": {"id": name, "address": f"{word}+{name}@example.test"},
                    "trigger": {"type": "campaign", "id": "april"},
                    "message": {"from": "shop@example.test", "subject": "News", "text": "It is spring"},
                }  # fmt: skip
                connection.execute("select sendonce.enqueue(%s)", [Jsonb(request)])
        return {name: send_id(self.place.workspace, "news", f"news:{name}") for name in names}

    def ask(self, *words: str) -> dict[str, UUID]:
        """Ask for a send to each of these recipients, who choose their own story; their ids by these words."""
        with self.place.database.transaction() as connection:
            for word in words:
                request = {
                    "mailstream": "receipts", "key": f"order:{word}",
                    "recipient": {"id": word, "address": f"{word}+ada@example.test"},
                    "trigger": {"type": "order.paid", "id": word},
                    "message": {"from": "shop@example.test", "subject": "Your receipt", "text": "Thank you"},
                }  # fmt: skip
                connection.execute("select sendonce.enqueue(%s)", [Jsonb(request)])
        return {word: send_id(self.place.workspace, "receipts", f"order:{word}") for word in words}

    def states(self, sends: dict[str, UUID]) -> dict[str, str]:
        """Where each send is."""
        rows = self.place.all(
            "select s.id, coalesce(w.state::text, s.state::text) as state from sendonce.sends s"
            " left join sendonce.work w on w.send_id = s.id"
        )
        state = {row["id"]: row["state"] for row in rows}
        return {word: state.get(send, "asked") for word, send in sends.items()}

    def become(self, sends: dict[str, UUID], wanted: dict[str, str]) -> None:
        """Wait until each send is where it is wanted."""
        try:
            until(lambda: self.states(sends) == wanted)
        except AssertionError:
            raise AssertionError(f"{self.states(sends)} instead of {wanted}") from None

    def evidence(self, *sends: UUID) -> set[str]:
        """What the trace of these sends says of their first attempt, which was in doubt: how it ended."""
        said = set()
        for send in sends:
            with self.place.database.snapshot() as connection:
                trace = read_trace(connection, self.place.workspace, send)
            assert trace is not None
            marks = [entry for entry in timeline(trace) if entry.what.startswith("Attempt 1:")]
            assert [mark.what for mark in marks[1:]] == [
                "Attempt 1: no answer, it may have been taken", "Attempt 1: turned out accepted",
            ]  # fmt: skip
            assert marks[1].at <= marks[2].at, "how long it took can be read"
            said |= {part for part in marks[2].detail.split("; ") if part.startswith("told by ")}
        return said

    def copies(self) -> dict[str, int]:
        """How often the provider took a message for each recipient's first word."""
        taken: dict[str, int] = {}
        for row in self.simulator.books:
            word = row.recipient.rpartition("<")[2].partition("+")[0]
            taken[word] = taken.get(word, 0) + 1
        return taken

    @contextmanager
    def worker(self, *, hasty: bool = False, lanes: int = 2) -> Iterator[None]:
        """A worker in threads of this process. Only where nobody would answer anyway is it to be a hasty one: a busy
        machine may be late with an answer that there is. One lane claims all that is there together."""
        settings = Settings(
            database_url=self.place.database.url, secret_key=SECRET, encryption_keys=KEYS, retry_seconds=0.05,
            poll_seconds=0.05, request_timeout_seconds=1 if hasty else 60, lease_seconds=120,
            lanes=lanes,
        )  # fmt: skip
        worker = Worker(settings, only=LOOPS)
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            yield
        finally:
            worker.stop()
            thread.join()

    @contextmanager
    def web(self) -> Iterator[str]:
        """The web on a socket; the provider's events go to the address that is given."""
        settings = Settings(database_url=self.place.database.url, secret_key=SECRET, encryption_keys=KEYS)
        app = create_app(settings, self.place.database, self.place.vault)
        with served(app) as base:
            url = f"{base}/webhooks/{self.account}"
            self.tell(webhook_url=url)
            self.simulator.configure(webhooks={"url": url, "delay_ms": 1.0})
            yield url
            self.simulator.configure(webhooks={"url": None})

    def tell(self, **more: str) -> None:
        """Save the account, with more settings than it needs to send."""
        known = provider(self.played.name)
        names = {setting.name: setting.secret for setting in known.settings}
        told = self.played.account(self.simulator) | {name: value for name, value in more.items() if name in names}
        capabilities = known.capabilities(told)
        with self.place.database.transaction() as connection:
            self.account = save_account(
                connection, self.place.vault, workspace_id=self.place.workspace, name="main", provider=known.name,
                settings={name: value for name, value in told.items() if not names[name]},
                secrets={name: value for name, value in told.items() if names[name]},
                endpoint=endpoint(known, told), key_window=capabilities.key_window,
                settling_time=capabilities.settling_time,
            )  # fmt: skip


@pytest.fixture
def desk(place: Place, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """Whoever is in doubt stays so until there is evidence; ``sendonce verify`` finds nothing at the end."""
    played: Played = request.param
    with Simulator(Config(dialect=played.name, api_key=played.api_key, retry_after_seconds=0)) as simulator:
        desk = Desk(place, played, simulator, place.account)
        desk.tell()
        yield desk
    assert violations(place) == []


by_all = pytest.mark.parametrize("desk", PLAYED, ids=lambda played: played.name, indirect=True)


@by_all
def test_each_end_of_a_call_leaves_its_state_and_doubt_ends_by_asking_or_by_repeating_under_the_key(desk: Desk) -> None:
    desk.simulator.configure(look_up_delay_ms=NEVER)
    sends = desk.ask("ada", "busy", "slow", "reject")
    left = {"ada": "accepted", "busy": "accepted", "slow": "accepted", "reject": "failed"}
    with desk.worker():
        desk.become(sends, left)
    sends |= desk.ask(*IN_DOUBT)
    left |= dict.fromkeys(IN_DOUBT, "unknown")
    with desk.worker(hasty=True):
        desk.become(sends, left)
        assert desk.copies() == dict.fromkeys({"ada", "busy", "slow"} | TAKEN, 1)
    attempts = desk.place.all("select send_id, n, status::text from sendonce.attempts order by send_id, n")
    of = {word: [row["status"] for row in attempts if row["send_id"] == send] for word, send in sends.items()}
    assert of["busy"] == ["rejected", "accepted"]
    assert of["reject"] == ["rejected"]
    assert all(of[word] == ["ambiguous"] for word in IN_DOUBT), "nobody tried again"

    if "look-up" in desk.played.evidence:
        desk.simulator.configure(look_up_delay_ms=0.0)
        desk.place.time_passes(timedelta(minutes=1))  # no call can be running any more
        with desk.worker():
            desk.become(sends, left | dict.fromkeys(TAKEN, "accepted"))
        assert desk.evidence(*(sends[word] for word in TAKEN)) == {"told by the provider when asked"}
    if "key" in desk.played.evidence:
        desk.place.run("update sendonce.mailstreams set unknown_policy = 'release', grace = '1 millisecond'")
        desk.place.time_passes(timedelta(hours=1))
        with desk.worker():
            desk.become(sends, left | dict.fromkeys(IN_DOUBT, "accepted"))
    assert max(desk.copies().values()) == 1


@by_all
def test_a_call_that_was_accepted_and_never_answered_is_settled_by_events(desk: Desk) -> None:
    if "event" not in desk.played.evidence:
        assert not provider(desk.played.name).capabilities(desk.played.account(desk.simulator)).metadata
        return
    desk.simulator.configure(look_up_delay_ms=NEVER, webhooks={"paused": True})
    with desk.web(), desk.worker(hasty=True):
        sends = desk.ask(*IN_DOUBT)
        desk.become(sends, dict.fromkeys(IN_DOUBT, "unknown"))
        desk.simulator.configure(webhooks={"paused": False})
        desk.become(sends, {word: "accepted" if word in TAKEN else "unknown" for word in IN_DOUBT})
    assert desk.evidence(*(sends[word] for word in TAKEN)) == {"told by an event"}
    assert desk.copies() == dict.fromkeys(TAKEN, 1)
    assert desk.place.count("unmatched") == 0
    ids = {row.send_id: row.message_id for row in desk.simulator.books}
    kept = desk.place.all(
        "select send_id, provider_message_id as told from sendonce.attempts where status = 'accepted'"
    )
    assert {str(row["send_id"]): row["told"] for row in kept} == ids, "the attempt has the id that the event told"


# ── several with one call ────────────────────────────────────────────────────────────────────────────────────────────

SHARING = [
    replace(played, settings=settings)
    for played in PLAYED
    for known in (provider(played.name),)
    for settings in ({**played.settings, **{s.name: "true" for s in known.settings if s.for_batches}},)
    if known.capabilities(settings).batch_size > 1
]
"""The providers whose calls may be shared, each with an account that asks for it."""


@pytest.mark.parametrize("desk", SHARING, ids=lambda played: played.name, indirect=True)
def test_a_call_that_several_share_leaves_each_in_its_state_and_evidence_settles_each(desk: Desk) -> None:
    place, simulator = desk.place, desk.simulator
    place.run("update sendonce.mailstreams set batches = true where name = 'news'")
    simulator.configure(look_up_delay_ms=NEVER, webhooks={"paused": True})
    # The ledger treats all alike: two of them stand for every end, with a key and without.
    all_ends = desk.played.name in ("resend", "postmark")
    answered = {"ada": "accepted"} | ({"busy": "accepted", "reject": "failed"} if all_ends else {})
    in_doubt = IN_DOUBT if all_ends else {"lost"}
    sends: dict[str, dict[str, UUID]] = {}
    with desk.web():
        with desk.worker(lanes=1):
            for word in (*answered, *sorted(in_doubt - SILENT)):
                sends[word] = desk.news(word)
                desk.become(sends[word], dict.fromkeys(sends[word], answered.get(word, "unknown")))
        if all_ends:
            with desk.worker(hasty=True, lanes=1):
                for word in sorted(SILENT):
                    sends[word] = desk.news(word)
                    desk.become(sends[word], dict.fromkeys(sends[word], "unknown"))
        for word, members in sends.items():
            rows = place.all(
                "select batch, n, status::text from sendonce.attempts where send_id = any(%s) order by n",
                list(members.values()),
            )
            (batch,) = {row["batch"] for row in rows if row["n"] == 1}
            assert batch is not None, f"{word}: all in one call"
            assert {row["batch"] for row in rows if row["n"] > 1} <= {None}, f"{word}: and alone after that"
        assert len({row.call for row in simulator.books if row.send_id in map(str, sends["ada"].values())}) == 1
        simulator.configure(webhooks={"paused": False})
        for word in in_doubt:
            state = "accepted" if word in TAKEN else "unknown"
            desk.become(sends[word], dict.fromkeys(sends[word], state))
    taken = {str(send) for word in sends.keys() & {"ada", "busy", *TAKEN} for send in sends[word].values()}
    assert Counter(row.send_id for row in simulator.books) == dict.fromkeys(taken, 1), "each once"
    assert desk.evidence(*sends["lost"].values()) == {"told by an event"}
