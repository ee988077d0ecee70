"""Search takes anything an agent has in hand, and says as what it understood it."""

from __future__ import annotations

import pytest

from dashboard.ledger import search as search_module
from dashboard.ledger.search import PAGED, Before, Hit, Reading, exact_hit, search, search_close
from dashboard.ledger.slips import addresses, spellings
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import State
from tests.factories import ADDRESS, Factory, at


def find(factory: Factory, text: str) -> list[Hit]:
    return search(factory.connection, factory.vault, factory.workspace, text)


def test_each_reading_finds_the_send_and_says_which_it_was(factory: Factory) -> None:
    send = factory.accepted(key="receipt:order_7:r1:v3", recipient="r1", trigger="evt_991", message_id="49a3")
    factory.event(send, "delivered", occurred=5, event_id="evt-from-resend")
    factory.duplicate(send, when=9, trigger_id="evt_992")
    factory.note(send, ticket="#ZD-4711")
    expected = {
        str(send): Reading.SEND_ID,
        f"<{send}@mail.example.com>": Reading.SEND_ID,
        f"{send}@mail.example.com": Reading.SEND_ID,
        f"Message-ID: <{send}@mail.example.com>": Reading.SEND_ID,
        "receipt:order_7:r1:v3": Reading.KEY,
        "receipt:order_7": Reading.KEY_PREFIX,
        "order_7": Reading.KEY_PREFIX,
        "evt_991": Reading.TRIGGER_ID,
        "evt_992": Reading.TRIGGER_ID,
        "r1": Reading.RECIPIENT_ID,
        " Ada@EXAMPLE.com ": Reading.ADDRESS,
        "49a3": Reading.PROVIDER_MESSAGE_ID,
        "<49a3@eu-west-1.amazonses.com>": Reading.PROVIDER_MESSAGE_ID,
        "evt-from-resend": Reading.EVENT_ID,
        "Your receipt": Reading.SUBJECT,
        "Re: AW:  your  RECEIPT": Reading.SUBJECT,
        "ZD-4711": Reading.TICKET,
        "#zd-4711": Reading.TICKET,
        "991": Reading.NUMBER,
        "order no. 991": Reading.NUMBER,
        "Order #991": Reading.NUMBER,
    }
    assert {text: [(hit.send_id, hit.reading) for hit in find(factory, text)] for text in expected} == {
        text: [(send, reading)] for text, reading in expected.items()
    }


def close(factory: Factory, text: str) -> list[Hit]:
    return search_close(factory.connection, factory.vault, factory.workspace, text)


def test_a_second_message_id_is_found_too(factory: Factory) -> None:
    send = factory.accepted()
    factory.add("second_message_ids", send_id=send, account_id=factory.account, provider_message_id="msg-9", attempt=1)
    assert [hit.reading for hit in find(factory, "msg-9")] == [Reading.PROVIDER_MESSAGE_ID]


@pytest.mark.parametrize("text", ["", "   ", "\0", "zürich", "no such thing", "a" * 5000, "%", "' or 1=1", "<>", "@"])
def test_text_that_means_nothing_finds_nothing(factory: Factory, text: str) -> None:
    factory.accepted()
    assert find(factory, text) == []


def test_nothing_is_found_across_workspaces(factory: Factory) -> None:
    send = factory.accepted(key="receipt:order_7", recipient="r1", trigger="evt_1", message_id="m1")
    factory.event(send, "delivered", occurred=5, event_id="e1")
    factory.add("second_message_ids", send_id=send, account_id=factory.account, provider_message_id="m2", attempt=1)
    factory.note(send, ticket="T-1")
    other = Factory(factory.connection)
    texts = (
        str(send), "receipt:order_7", "receipt", "r1", "evt_1", "m1", "m2", "e1", ADDRESS, "T-1", "Your receipt",
        "order_8", "m1-cut-off", "reciept:order_7",
    )  # fmt: skip
    for text in texts:
        assert find(other, text) == [], text
        assert close(other, text) == [], text


def test_an_exact_reading_comes_before_the_start_of_a_key_and_each_send_comes_once(factory: Factory) -> None:
    exact = factory.accepted(key="order_7", recipient="order_7")
    longer = factory.accepted(key="order_77", recipient="x", message_id="m2")
    hits = find(factory, "order_7")
    assert [(hit.send_id, hit.reading) for hit in hits] == [(exact, Reading.KEY), (longer, Reading.KEY_PREFIX)]
    assert exact_hit(hits) == hits[0]


def test_one_trigger_of_two_sends_is_not_an_exact_hit(factory: Factory) -> None:
    newer, older = factory.accepted(asked=10, message_id="a"), factory.accepted(asked=0, message_id="b")
    hits = find(factory, "evt_1")
    assert [hit.send_id for hit in hits] == [newer, older]
    assert exact_hit(hits) is None


def test_a_hit_has_the_state_of_its_work_row(factory: Factory) -> None:
    factory.unknown()
    assert [hit.state for hit in find(factory, ADDRESS)] == [State.UNKNOWN]


def test_an_address_is_found_under_every_live_key(factory: Factory) -> None:
    send = factory.accepted()
    rotated = Vault([("k2", b"n" * 32), ("k1", b"k" * 32)])
    assert [hit.send_id for hit in search(factory.connection, rotated, factory.workspace, ADDRESS)] == [send]


def test_a_reading_gives_at_most_so_many_hits(factory: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "HITS", 3)
    for second in range(5):
        factory.pending(asked=second, recipient="r1")
    assert [hit.recorded_at for hit in find(factory, "r1")] == [at(4.1), at(3.1), at(2.1)]


def test_a_number_is_found_in_keys_triggers_and_recipients_and_is_no_part_of_a_longer_one(factory: Factory) -> None:
    by_key = factory.accepted(key="receipt:order_847:v3", recipient="r1", trigger="t", message_id="a")
    by_trigger = factory.accepted(key="welcome-1:x", recipient="r2", trigger="order_847", message_id="b")
    by_recipient = factory.accepted(key="other", recipient="recipient_847", trigger="t", message_id="c")
    factory.accepted(key="receipt:order_8471:v3", recipient="recipient_8470", trigger="order_8479", message_id="d")
    hits = find(factory, "847")
    assert {hit.send_id for hit in hits} == {by_key, by_trigger, by_recipient}
    assert {hit.reading for hit in hits} == {Reading.NUMBER}
    assert exact_hit(hits) is None


@pytest.mark.parametrize("mail", ["Re: Votre reçu", "RE: votre  Reçu", "votre rec\u0327u", "Fwd: re: Votre reçu"])
def test_a_subject_is_found_as_mail_programs_change_it(factory: Factory, mail: str) -> None:
    send = factory.accepted(subject="Votre reçu")
    factory.accepted(subject="Votre reçu 2", message_id="m2")
    assert [(hit.send_id, hit.reading) for hit in find(factory, mail)] == [(send, Reading.SUBJECT)]


def test_a_subject_is_kept_as_a_keyed_hash_and_found_under_every_live_key(factory: Factory) -> None:
    send = factory.accepted(subject="Your order 84721 has shipped")
    row = factory.connection.execute("select subject_lookup from sendonce.messages").fetchone()
    assert row is not None
    assert len(row[0]) == 8
    other = Vault([("k9", b"x" * 32)])
    assert other.subject_lookup(factory.workspace, "Your order 84721 has shipped") != row[0]
    rotated = Vault([("k2", b"n" * 32), ("k1", b"k" * 32)])
    hits = search(factory.connection, rotated, factory.workspace, "your order 84721 has shipped")
    assert [hit.send_id for hit in hits] == [send]


@pytest.mark.parametrize("text", ["evt_1", "r1", ADDRESS, "Your receipt"], ids=[str(one) for one in PAGED])
def test_one_goes_on_to_the_older_ones_each_once(factory: Factory, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "HITS", 3)
    made = [
        factory.accepted(asked=n // 4, recipient="r1", message_id=f"m{n}") for n in range(10)
    ]  # fours at one moment
    found: list[Hit] = []
    before = search_module.START
    while hits := search(factory.connection, factory.vault, factory.workspace, text, before=before):
        found += hits
        before = Before.read(str(Before(hits[-1].recorded_at, hits[-1].send_id)))
    assert {hit.send_id for hit in found} == set(made)
    assert len(found) == 10
    assert found == sorted(found, key=lambda hit: hit.recorded_at, reverse=True)


def test_an_address_that_serves_as_an_id_is_masked(factory: Factory) -> None:
    factory.accepted(recipient="grace@example.com")
    assert [hit.recipient_id for hit in find(factory, "grace@example.com")] == ["g•••@example.com"]


# ── what is close ────────────────────────────────────────────────────────────────────────────────────────────────────

ID = "msg_2fXq9bT7LrVw"


@pytest.mark.parametrize(
    ("typed", "reading"),
    [
        ("order_84712", Reading.SLIP),  # two changed places
        ("order_8421", Reading.SLIP),  # one is missing
        ("order_8472", Reading.PIECE),
        ("order_847221", Reading.SLIP),  # one too many
        ("order_84751", Reading.SLIP),  # another one
        ("ordre_84721", Reading.SLIP),
        ("order-84721", Reading.SLIP),
        ("ORDER_84721", Reading.SLIP),
        ("order 84721", Reading.SLIP),
        ("#order_84721", Reading.SLIP),
        ("recipent_2045", Reading.SLIP),
        ("reciept:order_84721:v3", Reading.SLIP),
        ("ada@exmaple.com", Reading.SLIP),
        ("adda@example.com", Reading.SLIP),
        ("ada@example.co", None),
        ("ada+shop@example.com", Reading.SLIP),
        (ID[:9], Reading.PIECE),
        (f"<{ID[:12]}>", Reading.PIECE),
        ("evt-from-res", Reading.PIECE),
        ("order_99999", None),
        ("x", None),
        ("", None),
        ("\0", None),
    ],
)
def test_what_was_typed_almost_right_is_close(factory: Factory, typed: str, reading: Reading | None) -> None:
    send = factory.accepted(
        key="receipt:order_84721:v3", recipient="recipient_2045", trigger="order_84721", message_id=ID
    )
    factory.event(send, "delivered", occurred=5, event_id="evt-from-resend")
    hits = close(factory, typed)
    assert [(hit.send_id, hit.reading) for hit in hits] == ([(send, reading)] if reading else [])
    assert exact_hit(hits) is None, "a guess opens no trace by itself"


def test_a_send_id_is_found_by_its_beginning_and_with_a_slip(factory: Factory) -> None:
    send = factory.accepted()
    text = str(send)
    wrong = text[:20] + ("a" if text[20] != "a" else "b") + text[21:]
    found = {
        typed: [(hit.send_id, hit.reading) for hit in close(factory, typed)] for typed in (text[:8], text[:13], wrong)
    }
    assert found == {
        text[:8]: [(send, Reading.PIECE)], text[:13]: [(send, Reading.PIECE)], wrong: [(send, Reading.SLIP)],
    }  # fmt: skip


def test_spellings_are_bounded_and_never_the_text_itself() -> None:
    for text in ("order_84721", "x" * 40, "0b6e2f1c-0000-5000-8000-000000000001"):
        assert text not in spellings(text)
        assert len(spellings(text)) < 3_000
    assert spellings("abc") == spellings("x" * 41) == []
    assert len(addresses("somebody.with.a.long.name@mail.example.com")) < 150
