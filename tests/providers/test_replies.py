"""Mail that providers hand in: whose it is, what of it is read, and that nothing in it breaks anything.

The forms are written from the providers' documents: Postmark's "Inbound webhook", SendGrid's "Inbound Parse webhook",
Mailgun's "Receiving messages via HTTP", Amazon's "Contents of notifications for email receiving".
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dashboard.providers import PROVIDERS, NotAuthentic, read_reply
from dashboard.providers.base import CannotVerify, ReadsReplies, Reply, Webhook
from dashboard.providers.inbound import MOST_ANSWERED, MOST_RECIPIENTS, answered, as_text, read_mail, read_mime
from dashboard.simulator import sns
from tests.providers.rig import JSON

NOW = datetime.now(UTC).replace(microsecond=0)
PASSWORD, KEY = "shop:a-long-random-one", "key-signs"
SETTINGS: Mapping[str, dict[str, str]] = {
    "postmark": {"webhook_secret": PASSWORD},
    "sendgrid": {"reply_secret": PASSWORD, "webhook_secret": "what events are signed with"},
    "mailgun": {"webhook_secret": KEY},
    "ses": {"topic_arns": sns.TOPIC, "signing_certificate": sns.certificate().decode()},
}
BASIC = {"authorization": "Basic " + base64.b64encode(PASSWORD.encode()).decode()}
Pairs = Sequence[tuple[str, str]]
HEADERS: Pairs = (
    ("From", 'Ada "the first" <Ada@Example.com>'),
    ("To", "Shop <reply+token@reply.shop.example>"),
    ("Subject", "Re: Your receipt"),
    ("Date", "Mon, 30 Nov 2026 10:00:00 +0100"),
    ("Message-ID", "<a-1@mail.example.com>"),
    ("In-Reply-To", "<0b6e7a52@shop.example>"),
    ("References", "<root@shop.example> <0b6e7a52@shop.example>"),
)
SAID = "Wrong colour, please.\n\n> Thank you for your order"

Request = tuple[dict[str, str], bytes]


def postmark(headers: Pairs, said: str, **changes: Any) -> Request:
    named = dict(headers)
    document = {
        "From": named.get("From", ""), "FromFull": {"Email": "Ada@Example.com", "Name": "Ada"}, "To": named.get("To"),
        "ToFull": [{"Email": "reply+token@reply.shop.example"}], "Subject": named.get("Subject"),
        "Date": named.get("Date"), "OriginalRecipient": "reply+token@reply.shop.example", "TextBody": said,
        "MessageID": "22c74902-a0c1-4511-804f-341342852c90",
        "Headers": [{"Name": name, "Value": value} for name, value in headers], **changes,
    }  # fmt: skip
    return BASIC, json.dumps(document).encode()


def sendgrid(headers: Pairs, said: str, **changes: Any) -> Request:
    named = dict(headers)
    fields = {
        "headers": "".join(f"{name}: {value}\n" for name, value in headers), "from": named.get("From", ""),
        "to": named.get("To", ""), "subject": named.get("Subject", ""), "text": said, "charsets": "{}",
        "envelope": json.dumps({"to": ["reply+token@reply.shop.example"], "from": "ada@example.com"}), **changes,
    }  # fmt: skip
    return BASIC | {"content-type": "multipart/form-data; boundary=xYzZY"}, multipart(fields)


def multipart(fields: Mapping[str, str | bytes | None]) -> bytes:
    parts = [
        f'--xYzZY\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode()
        + (value if isinstance(value, bytes) else value.encode(errors="replace"))
        + b"\r\n"
        for name, value in fields.items()
        if value is not None
    ]
    file = b'--xYzZY\r\nContent-Disposition: form-data; name="attachment1"; filename="x.bin"\r\n\r\n\0\xff\r\n'
    return b"".join(parts) + file + b"--xYzZY--\r\n"


def mailgun(headers: Pairs, said: str, *, token: str = "t" * 50, key: str = KEY, **changes: Any) -> Request:
    named, stamp = dict(headers), str(int(NOW.timestamp()))
    fields = {
        "recipient": "reply+token@reply.shop.example", "sender": "ada@example.com", "from": named.get("From", ""),
        "subject": named.get("Subject", ""), "body-plain": said, "message-headers": json.dumps(list(headers)),
        "timestamp": stamp, "token": token,
        "signature": hmac.digest(key.encode(), f"{stamp}{token}".encode(), "sha256").hex(), **changes,
    }  # fmt: skip
    told = {name: value for name, value in fields.items() if value is not None}
    return {"content-type": "application/x-www-form-urlencoded"}, urlencode(told, errors="replace").encode()


def ses(headers: Pairs, said: str, *, raw: str | None = None, kind: str = "Received", **changes: Any) -> Request:
    mail = raw if raw is not None else "".join(f"{name}: {value}\n" for name, value in headers) + f"\n{said}"
    document = {
        "notificationType": kind,
        "receipt": {"recipients": ["reply+token@reply.shop.example"], "action": {"type": "SNS"}},
        "mail": {
            "messageId": "d6iitobk75ur44p8kdnnp7g2n800", "destination": ["reply+token@reply.shop.example"],
            "headers": [{"name": name, "value": value} for name, value in headers],
        },
        "content": mail, **changes,
    }  # fmt: skip
    told = json.dumps({name: value for name, value in document.items() if value is not None})
    return dict(sns.headers("Notification", "sns-1")), sns.envelope("Notification", "sns-1", told, NOW.timestamp())


WRITTEN: Mapping[str, Callable[..., Request]] = {
    "postmark": postmark, "sendgrid": sendgrid, "mailgun": mailgun, "ses": ses,
}  # fmt: skip
by_all = pytest.mark.parametrize("provider", WRITTEN)


def read(provider: str, request: Request) -> Webhook:
    headers, body = request
    return read_reply(provider, headers, body, SETTINGS[provider], NOW)


def reply(provider: str, headers: Pairs = HEADERS, said: str = SAID, **changes: Any) -> Reply:
    (one,) = read(provider, WRITTEN[provider](headers, said, **changes)).replies
    return one


def storable(one: Reply) -> bool:
    texts = [one.message_id, one.sender, one.subject, one.text, *one.recipients, *one.answers]
    return all(text is None or ("\0" not in text and text.encode()) for text in texts if text != "")


def test_those_that_hand_in_mail_say_so() -> None:
    assert {one.name for one in PROVIDERS if isinstance(one, ReadsReplies)} == set(WRITTEN)
    assert {one.name for one in PROVIDERS if one.capabilities({}).replies} == set(WRITTEN)
    with pytest.raises(ValueError, match="Resend hands in no mail"):
        read_reply("resend", {}, b"{}", {})


# ── what is read ─────────────────────────────────────────────────────────────────────────────────────────────────────


@by_all
def test_a_mail_is_read_alike_by_whomever_it_is_handed_in(provider: str) -> None:
    assert reply(provider) == Reply(
        message_id="a-1@mail.example.com",
        sender="ada@example.com",
        recipients=("reply+token@reply.shop.example",),
        answers=("0b6e7a52@shop.example", "root@shop.example"),
        written_at=datetime(2026, 11, 30, 9, 0, tzinfo=UTC),
        automatic=False,
        subject="Re: Your receipt",
        text=SAID,
    )


@pytest.mark.parametrize(
    ("header", "automatic"),
    [
        (("Auto-Submitted", "auto-replied"), True),
        (("Auto-Submitted", "auto-generated; why=vacation"), True),
        (("auto-submitted", " No (a person)"), False),
        (("Return-Path", "<>"), True),
        (("Return-Path", "<ada@example.com>"), False),
        (("Precedence", "auto_reply"), True),
        (("Precedence", "first-class"), False),
        (("X-Autoreply", "yes"), True),
        (("Content-Type", 'multipart/report; report-type="delivery-status"; boundary=b'), True),
        (("Content-Type", "text/plain"), False),
    ],
)
@by_all
def test_a_mail_that_no_person_wrote_says_so(provider: str, header: tuple[str, str], automatic: bool) -> None:
    assert reply(provider, [*HEADERS, header]).automatic is automatic


def test_what_it_quotes_is_left_out_where_the_provider_takes_it_away() -> None:
    assert reply("postmark", StrippedTextReply="Wrong colour, please.").text == "Wrong colour, please."
    assert reply("mailgun", **{"stripped-text": "Wrong colour, please."}).text == "Wrong colour, please."


def test_a_mail_without_text_says_what_its_html_says() -> None:
    html = "<html><head><title>no</title><style>p{}</style></head><body><p>Wrong  colour,<br>please.</p></body></html>"
    assert as_text(html) == "Wrong colour,\nplease."
    assert reply("postmark", TextBody="", HtmlBody=html).text == "Wrong colour,\nplease."
    assert reply("sendgrid", text=None, html=html).text == "Wrong colour,\nplease."


def test_a_raw_mail_is_taken_apart() -> None:
    raw = (
        b"From: =?utf-8?q?Ad=C3=A9le?= <ada@example.com>\r\nTo: shop@example.com\r\nSubject: =?utf-8?q?R=C3=A9?=\r\n"
        b"References: <a@b>\r\n\t<c@d>\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n"
        b"Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
        b"caf=E9\r\n--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment\r\n\r\n%PDF\r\n--b--\r\n"
    )
    form = BASIC | {"content-type": "multipart/form-data; boundary=xYzZY"}
    for one in (
        *read("sendgrid", (form, multipart({"email": raw, "envelope": "{}"}))).replies,
        reply("ses", raw=raw.decode()),
        reply("ses", raw=base64.b64encode(raw).decode(), receipt={"action": {"type": "SNS", "encoding": "BASE64"}}),
    ):
        assert (one.sender, one.subject, one.text) == ("ada@example.com", "Ré", "café")
        assert one.answers == ("c@d", "a@b")


def test_a_mail_that_is_only_kept_elsewhere_is_known_by_its_headers() -> None:
    one = reply("ses", content=None)
    assert (one.sender, one.text, one.answers[0]) == ("ada@example.com", None, "0b6e7a52@shop.example")


def test_of_hundreds_of_references_the_nearest_and_the_first_count() -> None:
    ids = [f"<m-{n}@x>" for n in range(500)]
    found = answered("<near@x>", " ".join(ids))
    assert len(found) == MOST_ANSWERED
    assert found[:2] == ("near@x", "m-499@x")
    assert found[-1] == "m-0@x"


def test_a_message_id_that_a_program_has_encoded_is_read_all_the_same() -> None:
    long = f"<0107{'a' * 60}-000000@eu-west-1.amazonses.com>"
    written = EmailMessage()
    written["In-Reply-To"] = long
    folded = str(written.as_bytes().decode()).partition(": ")[2].rstrip()
    assert "=?" in folded
    assert reply("ses", [("From", "ada@example.com"), ("In-Reply-To", folded)]).answers == (long[1:-1],)


# ── whose it is ──────────────────────────────────────────────────────────────────────────────────────────────────────


@by_all
def test_nobody_but_the_provider_hands_anything_in(provider: str) -> None:
    headers, body = WRITTEN[provider](HEADERS, SAID)
    kind = {name: value for name, value in headers.items() if name == "content-type"}
    wrong = {"authorization": "Basic " + base64.b64encode(b"shop:guessed").decode()}
    forged = {
        "postmark": [(kind, body), (kind | wrong, body)],
        "sendgrid": [(kind, body), (kind | wrong, body)],
        "mailgun": [mailgun(HEADERS, SAID, key="another"), mailgun(HEADERS, SAID, signature=None), (kind, b"from=x")],
        "ses": [(headers, body.replace(b"Wrong colour", b"Right colour")), (headers, b"{}"), ({}, b"")],
    }[provider]
    for one in forged:
        with pytest.raises(NotAuthentic):
            read(provider, one)
    with pytest.raises((CannotVerify, NotAuthentic)):
        read_reply(provider, headers, body, {}, NOW)


def test_a_signature_of_mailgun_is_believed_with_one_mail_however_its_form_is_written() -> None:
    fields = dict(parse_qsl(mailgun(HEADERS, SAID)[1].decode()))
    bodies = [
        multipart(fields),
        multipart(fields).replace(b"xYzZY", b"AbCdE"),
        multipart(fields | {"from": "eve@x.example"}),
    ]
    kinds = ["xYzZY", "AbCdE", "xYzZY"]
    signed = [
        read("mailgun", ({"content-type": f"multipart/form-data; boundary={kind}"}, body)).signed_token
        for kind, body in zip(kinds, bodies, strict=True)
    ]
    assert signed[0] == signed[1]
    assert {one.token for one in signed if one} == {"t" * 50}
    assert signed[0] != signed[2]


def test_an_event_that_is_sent_to_the_address_for_replies_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="belongs to the webhook address"):
        read("postmark", (BASIC, json.dumps({"RecordType": "Delivery"}).encode()))
    with pytest.raises(ValueError, match="belongs to the webhook address"):
        read("ses", ses(HEADERS, SAID, kind="Delivery"))


# ── hostile mail ─────────────────────────────────────────────────────────────────────────────────────────────────────

NASTY = [
    "\0",
    "\ud800",
    "<script>",
    "\u202e",
    "=?utf-8?b?!!!?=",
    "=?no-charset?q?x?=",
    "a" * 3000,
    "<" * 2000,
    "@" * 2000,
]
TEXTS = st.text(max_size=30) | st.sampled_from(NASTY)
NAMES = st.sampled_from([name for name, _ in HEADERS] + ["Auto-Submitted", "Cc", "Content-Type", "", "\0"])


@given(headers=st.lists(st.tuples(NAMES, TEXTS), max_size=12), said=TEXTS, html=TEXTS)
@example(headers=[("References", "<a@b>" * 5000), ("From", "x" * 100_000)], said="y" * 300_000, html="<" * 5000)
@example(headers=[("Date", "Mon, 99 Nov 99999 99:99:99 +9999")], said="", html="")
def test_whatever_a_mail_says_it_is_read_bounded_and_can_be_stored(
    headers: list[tuple[str, str]], said: str, html: str
) -> None:
    one = read_mail(headers, recipients=[said, html, None, 7], said=said or None, html=html)
    assert storable(one)
    assert len(one.answers) <= MOST_ANSWERED
    assert len(one.recipients) <= MOST_RECIPIENTS
    assert len(one.text or "") < 110_000
    assert max(map(len, [one.subject, one.sender or "", one.message_id or "", *one.answers]), default=0) <= 400


@by_all
@given(headers=st.lists(st.tuples(NAMES, TEXTS), max_size=6), said=TEXTS)
def test_nothing_that_a_stranger_writes_breaks_the_reading_of_a_request(
    provider: str, headers: list[tuple[str, str]], said: str
) -> None:
    try:
        found = read(provider, WRITTEN[provider](headers, said))
    except NotAuthentic:
        raise AssertionError("it was signed as it is") from None
    except ValueError:
        return
    assert all(storable(one) for one in found.replies)


@given(raw=st.binary(max_size=200), cut=st.integers(0, 600))
def test_a_damaged_raw_mail_is_read_or_refused(raw: bytes, cut: int) -> None:
    whole = b"Content-Type: multipart/mixed; boundary=b\r\nFrom: a@b.example\r\n\r\n--b\r\nContent-Type: text/plain; "
    for content in (raw, whole[:cut] + raw, whole + raw + b"\r\n\r\n\xff\xfe--b--"):
        assert storable(read_mime(content))


@by_all
@given(odd=JSON, damage=st.binary(max_size=40), at=st.floats(0, 1))
def test_a_damaged_request_is_read_or_refused(provider: str, odd: Any, damage: bytes, at: float) -> None:
    headers, body = WRITTEN[provider](HEADERS, SAID)
    place = int(at * len(body))
    bodies = [body[:place] + damage + body[place + len(damage) :], json.dumps(odd).encode()]
    for one in bodies:
        try:
            assert all(map(storable, read(provider, (headers, one)).replies))
        except (NotAuthentic, ValueError):
            continue


def test_a_mail_of_many_megabytes_or_of_a_thousand_layers_is_bounded_or_refused() -> None:
    large = reply("ses", raw="From: ada@example.com\nIn-Reply-To: <a@b>\n\n" + "x" * 3_000_000)
    assert large.answers == ("a@b",)
    assert len(large.text or "") < 110_000
    layers = b"From: a@b.example\n" + b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(2000)
    )
    with pytest.raises(ValueError, match="nested too deeply"):
        read_mime(layers)
