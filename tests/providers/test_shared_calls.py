"""Several messages with one call, over real sockets against the simulator that plays their provider: each arrives once
and byte for byte, each has its own outcome, and none is taken for another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.providers import mailgun, postmark, provider, resend, sendgrid, ses
from dashboard.providers.base import (
    Accepted,
    Ambiguous,
    Channel,
    Deadline,
    LooksUp,
    NeverWritten,
    Outcome,
    Outgoing,
    ProviderEvent,
    Question,
    SendsBatches,
    endpoint,
)
from dashboard.providers.results import Answer
from dashboard.simulator import Config, Simulator
from dashboard.simulator.events import Mail
from tests.providers.dialects import PLAYED, Played, in_a_word
from tests.providers.rig import JSON, Server, http_answer, outgoing, read_request
from tests.providers.test_dialects import PATIENCE, SHORT, read
from tests.simulator.client import Receiver, listening

BATCH = uuid5(NAMESPACE_URL, "batch")
IN_A_CALL = {"resend": 100, "sendgrid": 1_000, "postmark": 500, "mailgun": 1_000, "ses": 50}
BATCHING = [replace(each, settings={**each.settings, "bulk": "true"}) for each in PLAYED if each.name in IN_A_CALL]
by_all = pytest.mark.parametrize("played", BATCHING, ids=lambda played: played.name)
with_one_id = pytest.mark.parametrize(
    "played", [p for p in BATCHING if p.name in ("sendgrid", "mailgun")], ids=lambda played: played.name
)

OWN: dict[str, Callable[[int], dict[str, Any]]] = {
    **dict.fromkeys(
        ("resend", "postmark"),
        lambda n: {
            "subject": f"Nr. {n} ✓",
            "text": f"Für {n} ✉",
            "html": f"<b>{n}</b>",
            "headers": {"X-Number": f"{n}"},
            "sender": f"Shop {n} <shop{n}@example.com>",
        },
    ),
    "sendgrid": lambda n: {"subject": f"Nr. {n} ✓", "headers": {"X-Number": f"ü{n}"}},
    "mailgun": lambda n: {"headers": {"List-Unsubscribe": f"<https://shop.example/u?a={n}%20%C3%BC%&b={{{{x}}}}>"}},
    "ses": lambda n: {"subject": f"Nr. {n} ✓", "text": f"Für {n} ✉ -x- %recipient.x%", "html": f"<b>&amp; {n}</b>"},
}
"""What each member of a call may have for itself, beside its recipient and our ids."""


def member(
    number: int, *, address: str | None = None, name: str | None = None, attempt: int = 1, **own: Any
) -> Outgoing:
    fields = {"text": "Grüße ✉ 🎉\r\n.\n-x- {x} 100%", "html": "<p>Grüße 🎉 &amp; -x-</p>"} | own
    message = outgoing(address=address or f"ada{number}@example.com", name=name, attempt=attempt, **fields)
    return replace(message, send_id=uuid5(NAMESPACE_URL, f"member {number}"))


def members_of(played: Played, number: int = 4) -> list[Outgoing]:
    """What may go with one call."""
    return [member(n, name=f"Ada, die {n}. 🎉", **OWN[played.name](n)) for n in range(number)]


@dataclass
class Account:
    """A simulator, and a channel to it."""

    simulator: Simulator
    channel: Any

    def together(self, members: Sequence[Outgoing]) -> list[Outcome]:
        assert isinstance(self.channel, SendsBatches)
        return self.channel.submit_batch(BATCH, members)

    def words(self, members: Sequence[Outgoing]) -> list[str]:
        return [in_a_word(outcome) for outcome in self.together(members)]

    def calls(self) -> int:
        return len({row.call for row in self.simulator.books})

    def taken(self) -> list[str | None]:
        return [row.send_id for row in self.simulator.books]


Opened = Callable[..., Account]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Opens an account of a provider at a simulator that plays it; both end with the test."""
    begun: list[Account] = []

    def begin(played: Played, *, timeout: float = PATIENCE, **changes: Any) -> Account:
        simulator = Simulator(Config(dialect=played.name, api_key=played.api_key).changed(changes)).start()
        channel = provider(played.name).open_channel(played.account(simulator), request_timeout=timeout)
        begun.append(Account(simulator, channel))
        return begun[-1]

    yield begin
    for account in begun:
        account.channel.close()
        account.simulator.stop()


def channel_of(played: Played, **changes: str) -> Channel:
    """A channel that calls nobody."""
    return provider(played.name).open_channel({**played.settings, **changes}, request_timeout=1)


def parted(played: Played, members: Sequence[Outgoing], **changes: str) -> list[list[UUID]]:
    with closing(channel_of(played, **changes)) as channel:
        assert isinstance(channel, SendsBatches)
        return [[one.send_id for one in call] for call in channel.batches(members)]


def arrived(mail: Mail) -> dict[str, Any]:
    """What the recipient gets of what its sender wrote, and the provider of what we are told."""
    own = {name: value for name, value in mail.headers.items() if name.startswith(("X-Number", "List-", "X-Send"))}
    told = {name: mail.metadata.get(name) for name in ("send_id", "attempt", "send_attempt") if name in mail.metadata}
    return {"address": mail.address, "subject": mail.subject, "text": mail.text, "html": mail.html} | own | told


def expected(played: Played, sent: Outgoing) -> dict[str, Any]:
    attempt = {"sendgrid": "send_attempt", "resend": None}.get(played.name, "attempt")  # under a key, none travels
    message, ours = sent.message, str(sent.send_id)
    written = {"address": sent.address, "subject": message.subject, "text": message.text, "html": message.html}
    identity = {"X-Send-Id": ours, "send_id": ours} | ({attempt: str(sent.attempt)} if attempt else {})
    return written | message.headers | identity


# ── one call ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@by_all
def test_all_members_of_a_call_are_taken_once_each_with_what_is_its_own(played: Played, opened: Opened) -> None:
    account, members = opened(played), members_of(played)
    outcomes = account.together(members)
    assert account.calls() == 1
    assert account.taken() == [str(one.send_id) for one in members]
    assert [arrived(mail) for mail in account.simulator.mails()] == [expected(played, one) for one in members]
    assert all(list(mail.to) == [mail.to[0]] for mail in account.simulator.mails()), "none sees another"
    assert all(isinstance(outcome, Accepted) for outcome in outcomes)
    ids = [outcome.provider_message_id for outcome in outcomes if isinstance(outcome, Accepted)]
    assert len(set(ids)) == len(members)
    for row, told in zip(account.simulator.books, ids, strict=True):
        own = played.name not in ("sendgrid", "mailgun")
        assert told == (row.message_id if own else f"{row.message_id}/{row.send_id}")


REFERENCES = ["%recipient.x%", "%recipient.send_id%", "%recipient%", "{{x}}", "{{subject}}", "{{{html}}}", "{{"]
FRAGMENTS = ["}}", "-x-", "{x}", "\\", '"', "&amp;", "<b>", "%", "%20", "é", "🎉"]
BREAKS = ["\r\n", "\n.\n", "\t"]
LETTERS = st.characters(min_codepoint=32, codec="utf-8", exclude_categories=("Cc", "Zl", "Zp"))
ANYTHING = st.characters(codec="utf-8", exclude_characters="\0")


def drafts(references: list[str]) -> st.SearchStrategy[dict[str, str]]:
    """What a message says, these references among it."""

    def said(fragments: list[str], letters: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pieces = st.sampled_from(references + fragments) | st.text(letters, min_size=1, max_size=9)
        return st.lists(pieces, min_size=1, max_size=5).map("".join)

    body, line = said(FRAGMENTS + BREAKS, ANYTHING), said(FRAGMENTS, LETTERS)
    header = said([f for f in FRAGMENTS if f.isascii()], st.characters(min_codepoint=33, max_codepoint=126))
    return st.fixed_dictionaries({"subject": line, "text": body, "html": body, "header": header})


@by_all
def test_whatever_a_message_says_comes_out_unchanged_and_once(played: Played, opened: Opened) -> None:
    account, sizes = opened(played), set()

    @settings(max_examples=30, deadline=None)
    @given(said=st.lists(drafts([]), min_size=1, max_size=4) | st.lists(drafts(REFERENCES), min_size=1, max_size=4),
           same=st.booleans())  # fmt: skip
    def check(said: list[dict[str, str]], same: bool) -> None:
        account.simulator.reset()
        shared = said[0] if same else {}
        members = []
        for number, draft in enumerate(said):
            fields = draft | {name: shared[name] for name in ("subject", "text", "html") if name in shared}
            members.append(member(number, headers={"X-Number": fields.pop("header")}, **fields))
        for call in account.channel.batches(members):
            sizes.add(len(call))
            outcomes = account.together(call) if len(call) > 1 else [account.channel.submit(call[0])]
            assert {type(outcome) for outcome in outcomes} == {Accepted}
        found = {mail.metadata["send_id"]: arrived(mail) for mail in account.simulator.mails()}
        assert found == {str(one.send_id): expected(played, one) for one in members}
        assert len(account.simulator.books) == len(members)

    check()
    assert len(sizes) > 1, "some went together, and some alone"


@by_all
def test_a_message_that_can_never_be_written_stays_out_of_the_call(played: Played, opened: Opened) -> None:
    account, members = opened(played), members_of(played)
    bad = replace(members[1], message=replace(members[1].message, headers={"X-Bad": "a\r\nBcc: eve@example.com"}))
    assert account.words([members[0], bad, *members[2:]]) == ["accepted", "never written", "accepted", "accepted"]
    assert account.taken() == [str(one.send_id) for one in members if one is not members[1]]
    nobody = replace(members[0], message=replace(members[0].message, sender="Shop <shop@-ü-.example>", reply_to=None))
    if played.name != "resend":  # which makes of it what it likes
        two = [nobody, replace(nobody, send_id=BATCH, address="eve@example.com")]
        assert account.words(two) == ["never written"] * 2
    assert account.words([]) == []


@by_all
def test_one_bad_message_is_refused_and_the_others_pass_together_or_alone(played: Played, opened: Opened) -> None:
    account, members = opened(played), members_of(played)
    members[2] = replace(members[2], address="reject+ada@example.com")
    if played.name == "ses":
        assert account.words(members) == ["accepted", "accepted", "message", "accepted"]
    else:
        assert account.words(members) == ["message, later"] * 4, "nobody says whose fault it is"
        assert account.simulator.books == []
        again = [replace(one, attempt=2) for one in members]
        assert account.channel.batches(again) == [[one] for one in again]
        alone = [in_a_word(account.channel.submit(one)) for one in again]
        assert alone == ["accepted", "accepted", "message", "accepted"]
    assert account.taken() == [str(one.send_id) for one in members if one is not members[2]]


@by_all
def test_what_the_provider_says_of_the_whole_call_is_told_to_each(played: Played, opened: Opened) -> None:
    account, members = opened(played), members_of(played, 3)
    found = {}
    for error in played.errors:
        account.simulator.configure(error=error)
        (found[error],) = set(account.words(members))
    several = {"message": "message, later"}
    assert found == {error: several.get(word, word) for error, word in played.errors.items()}
    assert account.simulator.books == []
    account.simulator.configure(error=None, rate_limit=0)
    assert account.words(members) == ["account, later"] * 3


@by_all
@pytest.mark.parametrize(
    ("fault", "taken", "error_class"),
    [
        ("timeout_before", 0, "read_timeout"),
        ("accept_then_timeout", 3, "read_timeout"),
        ("reset_before", 0, "reset"),
        ("reset_after", 3, "reset"),
        ("garbage", 3, "unreadable_answer"),
        ("http_500_taken", 3, "http_500"),
    ],
)
def test_a_call_without_a_readable_answer_leaves_all_in_doubt(
    played: Played, opened: Opened, fault: str, taken: int, error_class: str
) -> None:
    account = opened(played, timeout=SHORT if "timeout" in fault else PATIENCE, http={fault: 1.0})
    outcomes = account.together(members_of(played, 3))
    assert [outcome.error_class for outcome in outcomes if isinstance(outcome, Ambiguous)] == [error_class] * 3
    assert account.simulator.wait_taken(taken, PATIENCE), "it may take it after the caller went away"
    assert len(account.simulator.books) == taken


@by_all
def test_nothing_is_written_after_the_earliest_deadline_and_where_nobody_listens(
    played: Played, opened: Opened
) -> None:
    account, members = opened(played), members_of(played, 2)
    late = [members[0], replace(members[1], deadline=Deadline.after(-1))]
    assert account.together(late) == [NeverWritten("submit deadline passed")] * 2
    account.simulator.refuse_connections()
    assert account.words(members) == ["nobody, later"] * 2
    assert account.simulator.books == []


# ── which go together ────────────────────────────────────────────────────────────────────────────────────────────────


@by_all
def test_a_call_has_no_address_twice_some_have_one_sender_and_what_is_tried_again_goes_alone(played: Played) -> None:
    a, b = member(1), member(2)
    other = member(3, sender="Other <other@example.com>")
    twin = member(4, address=a.address)
    again = member(5, attempt=2)
    bad = member(6, subject="two\nlines")
    own_sender = played.name in ("resend", "postmark")
    together = [[a, other, b]] if own_sender else [[a, b], [other]]
    assert parted(played, [a, other, b, twin, again, bad]) == [
        [one.send_id for one in call] for call in [*together, [twin], [again], [bad]]
    ]
    assert parted(played, []) == []


@by_all
def test_a_call_takes_no_more_than_its_provider_does(played: Played) -> None:
    most = provider(played.name).capabilities(played.settings).batch_size
    assert most == IN_A_CALL[played.name]
    sizes = [len(call) for call in parted(played, [member(number) for number in range(most + 1)])]
    assert sizes == [most, 1]


def test_amazon_takes_batches_only_where_the_account_asks_for_them() -> None:
    (played,) = (each for each in BATCHING if each.name == "ses")
    without = {name: value for name, value in played.settings.items() if name != "bulk"}
    assert provider("ses").capabilities(without).batch_size == 1
    assert [len(call) for call in parted(played, [member(1), member(2)], bulk="")] == [1, 1]
    assert endpoint(provider("ses"), without) != endpoint(provider("ses"), played.settings), (
        "workers open a new channel"
    )


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("sendgrid", {"text": "another text"}),
        ("sendgrid", {"html": None}),
        ("mailgun", {"text": "another text"}),
        ("mailgun", {"subject": "Another subject"}),
        ("mailgun", {"headers": {"X-Name": "Ünal"}}),
        ("mailgun", {"address": "Ada@example.com"}),
        ("mailgun", {"address": "ada@bücher.example"}),
        ("mailgun", {"name": "%Recipient.x%"}),
        ("mailgun", {"headers": {"X-Long": "x" * 901}}),
        ("ses", {"text": None}),
        ("ses", {"reply_to": "help@example.com"}),
        ("ses", {"address": "jürgen@example.com"}),
        ("ses", {"headers": {f"X-{number}": "x" for number in range(15)}}),
        ("ses", {"headers": {"X-Long": "x" * 996}}),
        ("ses", {"text": "x" * 262_144}),
    ],
)
def test_what_a_call_for_several_could_not_carry_unchanged_goes_by_itself(name: str, fields: dict[str, Any]) -> None:
    (played,) = (each for each in BATCHING if each.name == name)
    a, odd, b = member(1), member(2, **fields), member(3)
    assert parted(played, [a, odd, b]) == [[a.send_id, b.send_id], [odd.send_id]]


@pytest.mark.parametrize(
    ("name", "said"), [("mailgun", "%recipient.x%"), ("mailgun", "%RECIPIENT_email%"), ("ses", "{{x}}"), ("ses", "{{{")]
)
@pytest.mark.parametrize("where", ["subject", "text", "html"])
def test_what_reads_like_a_reference_goes_alone(name: str, said: str, where: str) -> None:
    (played,) = (each for each in BATCHING if each.name == name)
    a, b = member(1, **{where: f"a {said} b"}), member(2, **{where: f"a {said} b"})
    assert parted(played, [a, b]) == [[a.send_id], [b.send_id]]


def test_amazon_gets_no_call_that_is_longer_than_it_takes() -> None:
    (played,) = (each for each in BATCHING if each.name == "ses")
    members = [member(number, html=f'"{number}"' * 10_000 + "ü" * 20_000, name="Ä" * 300) for number in range(50)]
    channel = channel_of(played)
    assert isinstance(channel, SendsBatches)
    calls = channel.batches(members)
    bodies = [
        ses.bulk_body(call[0].message, [ses.bulk_entry(one) for one in call], configuration_set="x" * 64)
        for call in calls
    ]
    assert [one for call in calls for one in call] == members
    assert max(map(len, bodies)) <= 1_000_000
    assert len(calls) < len(members)
    channel.close()


# ── Resend's and Postmark's results ──────────────────────────────────────────────────────────────────────────────────


def test_resend_a_bad_message_is_left_out_of_the_call_and_tried_again_alone(opened: Opened) -> None:
    (played,) = (each for each in BATCHING if each.name == "resend")
    account, members = opened(played), members_of(played)
    members[1] = replace(members[1], message=replace(members[1].message, text="", html=None))
    assert account.words(members) == ["accepted", "message, later", "accepted", "accepted"], "it says no code"
    assert account.taken() == [str(one.send_id) for one in members if one is not members[1]]
    assert in_a_word(account.channel.submit(replace(members[1], attempt=2))) == "message"


def test_postmark_each_message_of_a_call_has_its_own_answer(opened: Opened) -> None:
    (played,) = (each for each in BATCHING if each.name == "postmark")
    account, members = opened(played), members_of(played)
    members[1] = replace(members[1], message=replace(members[1].message, text="", html=None))
    assert account.words(members) == ["accepted", "message", "accepted", "accepted"]
    assert account.taken() == [str(one.send_id) for one in members if one is not members[1]]


def test_resend_a_call_for_several_has_a_key_of_its_own(opened: Opened) -> None:
    (played,) = (each for each in BATCHING if each.name == "resend")
    account, members = opened(played), members_of(played, 2)
    first, again = account.together(members), account.together(members)
    assert first == again, "the first answer again"
    assert account.taken() == [str(one.send_id) for one in members]
    assert {row.key for row in account.simulator.books} == {str(BATCH)}
    assert in_a_word(account.channel.submit(members[0])) == "accepted", "alone it is another call"
    assert len(account.simulator.books) == 3


ONE, TWO = {"id": "a"}, {"id": "b"}
NO_RESULTS: dict[str, list[object]] = {
    "resend": [
        {"data": [ONE]}, {"data": [ONE, TWO, ONE]}, {"data": [ONE, {}]}, {"data": []}, {"id": "a"}, [ONE, TWO],
        {"data": [ONE, TWO], "errors": [{"index": 0, "message": "x"}]}, {"data": [ONE], "errors": [{"message": "x"}]},
        {"data": [ONE], "errors": [{"index": 2, "message": "x"}]}, {"data": [ONE], "errors": ["x"]},
        {"data": [], "errors": [{"index": 1, "message": "x"}, {"index": 1, "message": "y"}]},
    ],
    "postmark": [
        [], [{"MessageID": "a", "ErrorCode": 0}], {"MessageID": "a", "ErrorCode": 0}, [1, None], {"ErrorCode": 300},
        [{"ErrorCode": 0}, {"ErrorCode": 0}],
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "answer"), [(name, answer) for name, answers in NO_RESULTS.items() for answer in answers]
)
def test_an_answer_that_has_not_a_result_for_each_leaves_both_in_doubt(name: str, answer: object) -> None:
    (played,) = (each for each in BATCHING if each.name == name)
    assert bulk_answer(played, json.dumps(answer).encode()) == ["doubt", "doubt"]


@pytest.mark.parametrize("name", NO_RESULTS)
@settings(max_examples=50)
@given(answer=JSON)
def test_whatever_is_answered_each_has_one_outcome(name: str, answer: Any) -> None:
    judge = {"resend": resend.judge_batch, "postmark": postmark.judge_batch}[name]
    for status in (200, 422):
        told = judge(Answer(status=status, body=json.dumps(answer).encode()), [member(1), member(2)])
        assert len(told) == 2
        assert not any(isinstance(outcome, Accepted) for outcome in told) or status == 200


# ── Amazon's results ─────────────────────────────────────────────────────────────────────────────────────────────────


def bulk_answer(played: Played, body: bytes, *, status: str = "200 OK") -> list[str]:
    """What two messages come to that are answered so."""

    def behave(connection: Any, _: int) -> None:
        read_request(connection)
        connection.sendall(http_answer(body, status=status))

    with Server(behave) as server, closing(channel_of(played, base_url=server.url)) as channel:
        assert isinstance(channel, SendsBatches)
        return [in_a_word(outcome) for outcome in channel.submit_batch(BATCH, [member(1), member(2)])]


STATUSES = {  # "SendBulkEmail: BulkEmailStatus"
    "SUCCESS": "accepted",
    "MESSAGE_REJECTED": "message",
    "MAIL_FROM_DOMAIN_NOT_VERIFIED": "account",
    "CONFIGURATION_SET_NOT_FOUND": "account",
    "TEMPLATE_NOT_FOUND": "account",
    "ACCOUNT_SUSPENDED": "account",
    "ACCOUNT_THROTTLED": "account, later",
    "ACCOUNT_DAILY_QUOTA_EXCEEDED": "account",
    "INVALID_SENDING_POOL_NAME": "account",
    "ACCOUNT_SENDING_PAUSED": "account",
    "CONFIGURATION_SET_SENDING_PAUSED": "account",
    "INVALID_PARAMETER": "message",
    "TRANSIENT_FAILURE": "message, later",
    "FAILED": "doubt",
    "SOMETHING_NEW": "doubt",
}


def test_amazon_each_status_of_an_entry_is_that_messages_outcome() -> None:
    (played,) = (each for each in BATCHING if each.name == "ses")
    found = {}
    for status in STATUSES:
        results = [{"Status": status, "MessageId": "0107-1"}, {"Status": "SUCCESS", "MessageId": "0107-2"}]
        found[status], other = bulk_answer(played, json.dumps({"BulkEmailEntryResults": results}).encode())
        assert other == "accepted"
    assert found == STATUSES


@pytest.mark.parametrize(
    "body",
    [
        b"<html>", b"[]", b"{}", b'{"BulkEmailEntryResults":{}}', b'{"MessageId":"0107-1"}',
        b'{"BulkEmailEntryResults":[]}', b'{"BulkEmailEntryResults":[{"Status":"SUCCESS","MessageId":"0107-1"}]}',
        b'{"BulkEmailEntryResults":[1,null]}', b'{"BulkEmailEntryResults":[{"Status":"SUCCESS"},{}]}',
    ],
)  # fmt: skip
def test_amazon_an_answer_that_has_not_a_result_for_each_is_no_answer(body: bytes) -> None:
    (played,) = (each for each in BATCHING if each.name == "ses")
    assert bulk_answer(played, body) == ["doubt", "doubt"]


# ── what is told later ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening(Receiver(answer=lambda _: 200)) as receiver:
        yield receiver


@by_all
def test_an_event_of_a_member_names_the_member_and_nobody_else(
    played: Played, opened: Opened, receiver: Receiver
) -> None:
    account = opened(played, webhooks={"url": receiver.url, "delay_ms": 1.0})
    members = members_of(played)
    members[1] = replace(members[1], address="bounce+ada@example.com")
    outcomes = account.together(members)
    account.simulator.flush()
    assert account.simulator.wait_idle(PATIENCE)
    events = [
        event for arrival in receiver.arrivals for event in read(played, account.simulator, arrival, receiver.url)
    ]
    found = {(event.send_id, event.provider_message_id, event.recipient, event.attempt) for event in events}
    assert found == {
        (str(one.send_id), outcome.provider_message_id, one.address, None if played.name == "resend" else 1)
        for one, outcome in zip(members, outcomes, strict=True)
        if isinstance(outcome, Accepted)
    }


@with_one_id
def test_an_event_of_a_shared_call_that_lost_our_id_is_nobodys(
    played: Played, opened: Opened, receiver: Receiver
) -> None:
    account = opened(played, webhooks={"url": receiver.url, "delay_ms": 1.0})
    outcomes = account.together(members_of(played))
    account.simulator.flush()
    assert account.simulator.wait_idle(PATIENCE)
    bare: list[ProviderEvent | None] = []
    for arrival in receiver.arrivals:
        parsed = json.loads(arrival.body)
        if played.name == "sendgrid":
            ours = ("send_id", sendgrid.ATTEMPT, sendgrid.BATCH)
            bare += [sendgrid.event_of({n: v for n, v in one.items() if n not in ours}, b"") for one in parsed]
        else:
            parsed["event-data"]["user-variables"] = {}
            bare += mailgun.events_of(parsed, b"")
    (call_id,) = {row.message_id for row in account.simulator.books}
    assert {(event.send_id, event.provider_message_id) for event in bare if event} == {(None, call_id)}
    assert call_id not in {outcome.provider_message_id for outcome in outcomes if isinstance(outcome, Accepted)}


@with_one_id
def test_a_member_of_an_unanswered_call_can_be_asked_about(played: Played, opened: Opened) -> None:
    account, members = opened(played, http={"reset_after": 1.0}), members_of(played)
    since = datetime.now(UTC) - timedelta(seconds=1)
    assert account.words(members) == ["doubt"] * len(members)
    assert isinstance(account.channel, LooksUp)
    (call_id,) = {row.message_id for row in account.simulator.books}
    for one in members:
        found = account.channel.look_up(Question(send_id=one.send_id, address=one.address, since=since))
        assert {(event.send_id, event.provider_message_id) for event in found} == {
            (str(one.send_id), f"{call_id}/{one.send_id}")
        }
