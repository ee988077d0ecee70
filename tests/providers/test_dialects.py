"""Every adapter over real sockets against the simulator that plays its provider: each end that a call may have leaves
the outcome that the providers' documents give it, and the provider's books agree; what the provider tells is verified
and read for what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from dashboard.lifecycle import EventType
from dashboard.providers import provider, read_webhook
from dashboard.providers.base import Accepted, Ambiguous, LooksUp, Outcome, Outgoing, ProviderEvent, Question, Rejected
from dashboard.providers.checking import check_credentials, check_events
from dashboard.simulator import DIALECTS, Config, Simulator
from dashboard.simulator.dialect import Reaction
from dashboard.simulator.events import Fact
from tests.providers.dialects import PLAYED, Played, in_a_word
from tests.providers.rig import SEND_ID, outgoing
from tests.simulator.client import Arrival, Receiver, listening

SHORT = 0.3
"""Seconds after which a call to somebody who never answers has timed out."""
PATIENCE = 60.0
LARGE = "x" * (4 << 20)
"""More than the buffers of a connection hold."""

played_by_all = pytest.mark.parametrize("played", PLAYED, ids=lambda played: played.name)


@pytest.fixture
def start() -> Iterator[Callable[..., Simulator]]:
    """Starts the simulator that plays a provider; it ends with the test."""
    started: list[Simulator] = []

    def begin(played: Played, **settings: Any) -> Simulator:
        config = Config(dialect=played.name, api_key=played.api_key).changed(settings)
        started.append(Simulator(config).start())
        return started[-1]

    yield begin
    for simulator in started:
        simulator.stop()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening(Receiver(answer=lambda _: 200)) as receiver:
        yield receiver


Start = Callable[..., Simulator]


def submit(
    played: Played, simulator: Simulator, message: Outgoing | None = None, *, timeout: float = PATIENCE, **settings: str
) -> Outcome:
    """One call through the adapter, as an account with these settings changed."""
    account = played.account(simulator) | settings
    with closing(provider(played.name).open_channel(account, request_timeout=timeout)) as channel:
        return channel.submit(message or outgoing())


def test_every_provider_that_is_played_is_tried_here() -> None:
    assert [played.name for played in PLAYED] == list(DIALECTS)


# ── one call ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@played_by_all
def test_a_message_is_accepted_once_under_the_id_that_the_provider_tells(played: Played, start: Start) -> None:
    simulator = start(played)
    message = outgoing(
        name="Ada, née Ünal",
        subject="Grüße",
        html="<p>Thanks.</p>",
        reply_to="Help <help@example.com>",
        headers={"X-Entity": "order 84721"},
    )
    outcome = submit(played, simulator, message)
    assert isinstance(outcome, Accepted)
    (row,) = simulator.books
    assert (row.message_id, row.send_id) == (outcome.provider_message_id, str(SEND_ID))
    assert "ada@example.com" in row.recipient
    assert row.protocol == played.name


ORDINARY: dict[str, dict[str, Any]] = {
    "html alone": {"text": None, "html": "<p>Thanks.</p>"},
    "an empty text beside html": {"text": "", "html": "<p>Thanks.</p>"},
    "an empty html beside text": {"html": ""},
    "a company with a comma": {"sender": "Müller, Söhne & Co. <shop@example.com>", "name": "Ada, Countess"},
    "quotes in names": {"sender": '"The \\"best\\" shop" <shop@example.com>', "name": 'Ada "the first"'},
    "an international domain": {"address": "ada@bücher.example", "sender": "shop@bücher.example"},
    "letters of all kinds": {"subject": "Ihre Rechnung über 5 € ✉", "text": "Grüße ✉\n.\nbis bald", "name": "Дарья"},
    "a plus and a quote": {"address": "o'ada+shop@example.com"},
    "headers": {"headers": {"X-Order": "84721", "List-Unsubscribe": "<https://shop.example/u?a=1&b=2>", "X-Word": "ü"}},
    "a long header": {"headers": {"X-Long": "word " * 150}},
    "a header that is empty": {"headers": {"X-Empty": ""}},
    "a reply-to with a name": {"reply_to": "Help, please <help@example.com>"},
}


@played_by_all
def test_no_provider_refuses_an_ordinary_message(played: Played, start: Start) -> None:
    simulator = start(played)
    found = {}
    for what, fields in ORDINARY.items():
        message = replace(outgoing(**fields), send_id=uuid5(NAMESPACE_URL, what))
        found[what] = in_a_word(submit(played, simulator, message))
    assert found == dict.fromkeys(ORDINARY, "accepted")


@played_by_all
def test_each_documented_error_means_what_the_documents_say(played: Played, start: Start) -> None:
    simulator = start(played)
    assert played.errors.keys() == DIALECTS[played.name].errors.keys()
    found = {}
    for error in played.errors:
        simulator.configure(error=error)
        found[error] = in_a_word(submit(played, simulator))
    assert found == dict(played.errors)
    assert simulator.books == []


@played_by_all
def test_wrong_credentials_are_the_accounts_fault(played: Played, start: Start) -> None:
    simulator = start(played)
    outcome = submit(played, simulator, **played.wrong)
    assert in_a_word(outcome) == "account"
    assert simulator.books == []


@played_by_all
def test_over_the_rate_limit_it_is_for_later(played: Played, start: Start) -> None:
    simulator = start(played, rate_limit=0, retry_after_seconds=7)
    outcome = submit(played, simulator)
    assert isinstance(outcome, Rejected)
    assert in_a_word(outcome) == "account, later"
    told = outcome.retry_after_seconds
    assert (told is not None and 5 <= told <= 7) if played.says_when else told is None
    assert simulator.books == []


@played_by_all
@pytest.mark.parametrize(
    ("fault", "taken", "error_class"),
    [
        ("timeout_before", 0, "read_timeout"),
        ("accept_then_timeout", 1, "read_timeout"),
        ("reset_before", 0, "reset"),
        ("reset_after", 1, "reset"),
        ("garbage", 1, "unreadable_answer"),
        ("http_500_taken", 1, "http_500"),
        ("http_500_not_taken", 0, "http_500"),
    ],
)
def test_a_call_without_a_readable_answer_is_in_doubt(
    played: Played, start: Start, fault: str, taken: int, error_class: str
) -> None:
    simulator = start(played, http={fault: 1.0})
    outcome = submit(played, simulator, timeout=SHORT if "timeout" in fault else PATIENCE)
    assert isinstance(outcome, Ambiguous), outcome
    assert outcome.error_class == error_class
    assert simulator.wait_taken(taken, PATIENCE), "it may take it after the caller went away"
    assert len(simulator.books) == taken


@played_by_all
def test_a_reset_while_the_request_is_being_written_is_in_doubt(played: Played, start: Start) -> None:
    simulator = start(played, cut_requests=True)
    outcome = submit(played, simulator, outgoing(text=LARGE))
    assert isinstance(outcome, Ambiguous), outcome
    assert outcome.error_class in ("reset", "cut_off")
    assert simulator.books == []


@played_by_all
def test_where_nobody_listens_nothing_was_taken(played: Played, start: Start) -> None:
    simulator = start(played)
    simulator.refuse_connections()
    assert in_a_word(submit(played, simulator)) == "nobody, later"


@played_by_all
def test_an_account_is_tried_out_without_anything_that_could_be_taken(played: Played, start: Start) -> None:
    simulator = start(played)
    chosen, account = provider(played.name), played.account(simulator)
    assert check_credentials(chosen, account, request_timeout=PATIENCE).verdict == "good"
    refused = check_credentials(chosen, account | dict(played.wrong), request_timeout=PATIENCE)
    assert refused.verdict == "wrong"
    assert "refuses this account" in refused.words
    assert all(secret not in refused.words for secret in played.wrong.values())
    simulator.refuse_connections()
    away = check_credentials(chosen, account, request_timeout=PATIENCE)
    assert (away.verdict, "is not reached" in away.words) == ("wrong", True)
    assert simulator.books == []


@played_by_all
def test_an_account_that_could_verify_no_event_is_told_so(played: Played, start: Start) -> None:
    chosen, account = provider(played.name), played.account(start(played))
    url, now = "https://mail.example.com/webhooks/one", datetime.now(UTC)
    assert check_events(chosen, account, url=url, now=now).verdict == "good"
    bare = {
        name: value for name, value in account.items() if name in {s.name for s in chosen.settings if not s.for_events}
    }
    assert check_events(chosen, bare, url=url, now=now).verdict == "wrong"


# ── many calls ───────────────────────────────────────────────────────────────────────────────────────────────────────


@played_by_all
def test_accepted_is_in_the_books_and_a_definite_no_is_not(played: Played, start: Start) -> None:
    faults = {"reset_after": 0.2, "reset_before": 0.2, "http_500_taken": 0.1, "http_429": 0.1, "garbage": 0.1}
    simulator = start(played, seed=11, http=faults)
    sends = [uuid5(NAMESPACE_URL, f"send {number}") for number in range(40)]
    account = played.account(simulator)
    with closing(provider(played.name).open_channel(account, request_timeout=PATIENCE)) as channel:
        outcomes = {send: in_a_word(channel.submit(replace(outgoing(), send_id=send))) for send in sends}
    taken = [row.send_id for row in simulator.books]
    assert set(outcomes.values()) == {"accepted", "doubt", "account, later"}
    for send, outcome in outcomes.items():
        copies = taken.count(str(send))
        assert copies in {"accepted": (1,), "account, later": (0,)}.get(outcome, (0, 1))


# ── what is told ─────────────────────────────────────────────────────────────────────────────────────────────────────


def read(played: Played, simulator: Simulator, arrival: Arrival, url: str) -> tuple[ProviderEvent, ...]:
    """The events of one request, verified as the account would."""
    found = read_webhook(played.name, arrival.headers, arrival.body, played.account(simulator), url=url)
    assert not found.unreadable
    return found.events


STORIES = {
    "ada": ("sent", "delivered"),
    "bounce": ("sent", "bounced"),
    "softbounce": ("sent", "soft_bounced"),
    "suppressed": ("suppressed",),
    "failed": ("failed",),
    "complain": ("sent", "delivered", "complained"),
    "delay": ("sent", "delayed", "delivered"),
    "click": ("sent", "delivered", "opened", "clicked"),
}


@played_by_all
@pytest.mark.parametrize("badly", [False, True], ids=["in order", "late, twice, out of order"])
def test_what_happens_to_a_message_is_told_authentically_and_read_for_what_it_is(
    played: Played, start: Start, receiver: Receiver, badly: bool
) -> None:
    """Badly: each fact comes again under the same id, again under another one, and the last one first."""
    shares = {"repeat": 1.0, "other_id": 1.0, "out_of_order": 1.0} if badly else {}
    simulator = start(played, webhooks={"url": receiver.url, "delay_ms": 1.0, **shares})
    ids = {}
    for number, word in enumerate(STORIES):
        message = replace(outgoing(address=f"{word}+ada@example.com"), send_id=uuid5(NAMESPACE_URL, word))
        outcome = submit(played, simulator, replace(message, attempt=number + 1))
        assert isinstance(outcome, Accepted)
        ids[str(message.send_id)] = (word, outcome.provider_message_id)
    simulator.flush()
    assert simulator.wait_idle(PATIENCE)
    read_all = [event for arrival in receiver.arrivals for event in read(played, simulator, arrival, receiver.url)]
    for send_id, (word, message_id) in ids.items():
        events = [event for event in read_all if message_id == event.provider_message_id]
        wanted = [played.meaning(each) for each in STORIES[word] if each not in played.untold]
        assert {(event.event_type, event.bounce_class) for event in events} == set(wanted), word
        ids_a_fact = 2 if badly and played.own_event_ids else 1
        assert len({event.event_id for event in events}) == len(wanted) * ids_a_fact
        assert len(events) == len(wanted) * (3 if badly else 1)
        facts = {(event.event_type, event.recipient, event.occurred_at, event.url) for event in events}
        assert len(facts) == len(wanted), "under another id the same fact is told, at the same time"
        for event in events:
            if provider(played.name).capabilities(played.account(simulator)).metadata:
                assert event.send_id == send_id
            if event.event_type not in (EventType.OPENED, EventType.CLICKED):
                assert event.recipient == f"{word}+ada@example.com"


@played_by_all
def test_an_event_that_was_not_stored_comes_again_and_is_still_authentic(
    played: Played, start: Start, receiver: Receiver
) -> None:
    """Our own trouble is answered as the provider has to be: none takes that for good, but some tell a few events once
    only."""
    simulator = start(played, webhooks={"url": receiver.url, "delay_ms": 1.0, "time_scale": 0.0001})
    trouble = provider(played.name).capabilities(played.account(simulator)).come_again
    receiver.answer = lambda number: trouble if number == 1 else 200
    submit(played, simulator, outgoing(address="bounce+ada@example.com"))
    assert simulator.wait_idle(PATIENCE)
    told = 1 if "sent" in played.untold else 2
    assert len(receiver.arrivals) == told + 1
    events = [event for arrival in receiver.arrivals for event in read(played, simulator, arrival, receiver.url)]
    assert len({event.event_id for event in events}) == told


@played_by_all
def test_only_what_is_not_authentic_may_be_answered_with_401(played: Played) -> None:
    """DESIGN §5.15: an event may come again after our own trouble, and is done with after our 200."""
    reaction = DIALECTS[played.name].reaction
    fact = Fact("bounced", "bounced", 0.0, "1")
    trouble = provider(played.name).capabilities(played.settings).come_again
    assert reaction(200, fact) is Reaction.DONE
    assert reaction(trouble, fact) is Reaction.REPEAT
    assert trouble == (429 if played.name == "brevo" else 503), "only Brevo discards at 5xx"


# ── what can be asked ────────────────────────────────────────────────────────────────────────────────────────────────


@played_by_all
def test_an_unanswered_call_can_be_asked_about_where_the_provider_shows_our_id(played: Played, start: Start) -> None:
    simulator = start(played, look_up_delay_ms=60_000.0)
    account = played.account(simulator)
    with closing(provider(played.name).open_channel(account, request_timeout=PATIENCE)) as channel:
        assert isinstance(channel, LooksUp) == ("look-up" in played.evidence)
        if not isinstance(channel, LooksUp):
            return
        since = datetime.now(UTC) - timedelta(seconds=1)
        other = uuid5(NAMESPACE_URL, "another send to the same person")
        accepted = channel.submit(outgoing())
        channel.submit(replace(outgoing(), send_id=other))
        assert isinstance(accepted, Accepted)
        question = Question(send_id=SEND_ID, address="ada@example.com", since=since)
        assert channel.look_up(question) == (), "it is not shown yet"
        simulator.configure(look_up_delay_ms=0.0)
        found = channel.look_up(question)
        assert found
        assert {event.send_id for event in found} == {str(SEND_ID)}
        assert {event.provider_message_id for event in found} == {accepted.provider_message_id}
        assert {event.attempt for event in found} <= {1, None}
