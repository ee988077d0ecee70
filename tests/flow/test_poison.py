"""Poison on the whole way: what an adapter cannot write fails with its reason, and its neighbours are accepted."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.flow.town import Town

POISON: dict[str, dict[str, Any]] = {
    "a header of two lines": {"headers": {"X-A": "one\r\nBcc: eve@example.test"}},
    "a header that has no name": {"headers": {"": "one"}},
    "a sender that is no address": {"from": "nobody"},
    "somewhere to reply that is no address": {"reply_to": "<<"},
}


@pytest.mark.parametrize("provider", ["resend", "smtp"])
def test_what_an_adapter_cannot_write_fails_and_its_neighbours_are_accepted(town: Town, provider: str) -> None:
    town.stream(policy="hold", keys=True, provider=provider)
    first = town.enqueue(["order:1"])
    with town.place.database.transaction() as connection:
        for number, (name, members) in enumerate(POISON.items()):
            request = {
                "mailstream": "receipts", "key": f"poison:{number}", "trigger": {"type": "order.paid", "id": name},
                "recipient": {"id": "r", "address": "ada@example.test"},
                "message": {"from": "shop@example.test", "subject": "S", "text": "T"} | members,
            }  # fmt: skip
            connection.execute("select sendonce.enqueue(%s)", [Jsonb(request)])
    large = {
        "mailstream": "receipts", "key": "large:1", "trigger": {"type": "order.paid", "id": "large"},
        "recipient": {"id": "r", "address": "ada@example.test"},
        "message": {"from": "shop@example.test", "subject": "S", "text": "x" * 5_000_000},
    }  # fmt: skip
    town.place.run("select sendonce.enqueue(%s)", Jsonb(large))
    last = town.enqueue(["order:2"])
    town.worker()
    town.wait_for(accepted=3, failed=len(POISON))
    assert set(town.copies()) >= {str(send) for send in (*first, *last)}
    failed = town.place.all("select distinct reason from sendonce.sends where state = 'failed'")
    assert failed == [{"reason": "cannot_be_written"}]
    paused = town.place.one("select count(*) as n from sendonce.accounts where paused_until is not null")
    assert paused["n"] == 0, "one message is not the account's trouble"
