"""A provider that is down for long: it is left alone, no attempt is burnt, what has waited goes out in its order."""

from __future__ import annotations

from psycopg.types.json import Jsonb

from dashboard.identity import send_id
from dashboard.ledger.accounts import TRIED_AGAIN, TROUBLES_TO_PAUSE
from tests.crew import until
from tests.flow.town import Town
from tests.survival.ending import nothing_lost_nothing_twice, wait_for_rest

EACH = 60
IN_FLIGHT = 20
STREAMS = {"codes": "security", "receipts": "transactional", "news": "campaign"}


def test_a_provider_that_is_down_for_long_and_comes_back(town: Town) -> None:
    town.place.stream("codes", "security", max_attempts=2)
    town.place.run("update sendonce.mailstreams set max_attempts = 2")
    town.simulator.refuse_connections()
    # The least important is asked for first.
    sends = [send for stream in reversed(STREAMS) for send in ask(town, stream)]
    for _ in range(2):
        town.worker(SENDONCE_RETRY_SECONDS="0.2", SENDONCE_IN_FLIGHT=str(IN_FLIGHT))

    rounds = "select coalesce(max(troubles), 0) / %s as n from sendonce.accounts"
    until(lambda: town.place.one(rounds, TROUBLES_TO_PAUSE)["n"] >= 4, what="three tries after the first round")
    made = town.place.count("attempts")
    assert made <= 2 * IN_FLIGHT + 10, "what was in flight when it began, and then one call at a time"
    assert town.place.one("select max(counted_attempts) as n from sendonce.work") == {"n": 0}, "and none is counted"
    town.wait_for(pending=len(sends))  # one or two are always being tried
    waiting = town.place.one("select count(*) as n from sendonce.work where claim_at = 'infinity' or reason is null")
    assert waiting == {"n": 0}, "each has its reason and its next try"

    town.simulator.accept_connections()
    assert wait_for_rest(town) == {"accepted": len(sends)}
    nothing_lost_nothing_twice(town, sends)
    paused = town.place.one("select paused_until > now() as paused, paused_reason from sendonce.accounts")
    assert paused["paused_reason"] != TRIED_AGAIN
    taken = [of_stream(town, row.send_id) for row in town.simulator.books]
    middle = {stream: place_in(taken, stream) for stream in STREAMS}
    assert middle["codes"] < middle["receipts"] < middle["news"], "the most important first"


def ask(town: Town, stream: str) -> list[object]:
    """Ask for some sends of a mailstream."""
    keys = [f"{stream}:{i}" for i in range(EACH)]
    with town.place.database.transaction() as connection:
        for key in keys:
            request = {
                "mailstream": stream, "key": key, "trigger": {"type": "t", "id": key},
                "recipient": {"id": key, "address": f"ada+{key.replace(':', '-')}@example.test"},
                "message": {"from": "shop@example.test", "subject": "Hello", "text": key},
            }  # fmt: skip
            connection.execute("select sendonce.enqueue(%s)", [Jsonb(request)])
    return [send_id(town.place.workspace, stream, key) for key in keys]


def of_stream(town: Town, send: str | None) -> str:
    """The mailstream of a send."""
    stream: str = town.place.one("select mailstream from sendonce.sends where id = %s::uuid", send)["mailstream"]
    return stream


def place_in(taken: list[str], stream: str) -> float:
    """The mean place of a mailstream's mails among all that were taken."""
    places = [place for place, of in enumerate(taken) if of == stream]
    return sum(places) / len(places)
