"""A recipient answers an accepted message, and the vendor hands that in, in the shape that its documents have."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import parse_qs

import pytest

from dashboard.simulator import Simulator
from tests.simulator.client import Client, Receiver

Start = Callable[..., Simulator]


def accepted(sim: Simulator, **changes: object) -> None:
    """A message of the send ``send-1``, which asks for answers elsewhere."""
    mail = {
        "From": "Shop <shop@example.test>", "To": "Ada <ada@example.test>", "Subject": "Your receipt", "TextBody": "Hi",
        "ReplyTo": "reply+x@reply.example.test", "Metadata": {"send_id": "send-1"},
        "Headers": [{"Name": "Message-ID", "Value": "<send-1@example.test>"}], **changes,
    }  # fmt: skip
    token = {"x-postmark-server-token": "token", "accept": "application/json"}
    assert Client(sim).call("POST", "/email", mail, headers=token).status == 200


def test_a_recipient_answers_to_where_the_message_asked_and_names_it(start: Start, receiver: Receiver) -> None:
    url = receiver.url.replace("http://", "http://shop:pass%20word@")
    sim = start(dialect="postmark", webhooks={"replies_url": url})
    accepted(sim)
    assert sim.reply("send-1", text="Wrong colour.") == 204
    (call,) = receiver.arrivals
    said = json.loads(call.body)
    assert call.headers["authorization"] == "Basic " + base64.b64encode(b"shop:pass word").decode()
    assert (said["OriginalRecipient"], said["MailboxHash"]) == ("reply+x@reply.example.test", "x")
    assert said["FromFull"]["Email"] == "ada@example.test"
    assert said["StrippedTextReply"] == "Wrong colour."
    assert "> Hi" in said["TextBody"]
    headers = {one["Name"]: one["Value"] for one in said["Headers"]}
    assert headers["In-Reply-To"] == headers["References"] == "<send-1@example.test>"
    assert "Auto-Submitted" not in headers


def test_a_responder_answers_as_the_standard_asks(start: Start, receiver: Receiver) -> None:
    sim = start(dialect="postmark", webhooks={"replies_url": receiver.url})
    accepted(sim, ReplyTo="")
    asked = {"send_id": "send-1", "automatic": True, "sender": "ada+work@example.test"}
    assert Client(sim).call("POST", "/_control/reply", asked).json == {"status": 204}
    said = json.loads(receiver.arrivals[0].body)
    assert {"Name": "Auto-Submitted", "Value": "auto-replied"} in said["Headers"]
    assert said["FromFull"]["Email"] == "ada+work@example.test"
    assert said["ToFull"][0]["Email"] == "shop@example.test", "nothing else was asked for"


def test_nobody_answers_what_was_not_accepted_or_where_no_mail_comes_in(start: Start) -> None:
    sim = start(dialect="postmark")
    unknown = Client(sim).call("POST", "/_control/reply", {"send_id": "send-9"})
    assert (unknown.status, unknown.json["error"][:11]) == (400, "no message ")
    accepted(sim)
    with pytest.raises(ValueError, match="replies_url is not set"):
        sim.reply("send-1")
    assert Client(sim).call("POST", "/_control/reply", {"send_id": "send-1", "colour": "red"}).status == 400
    other = start(dialect="mailtrap")
    with pytest.raises(ValueError, match="no message of this send"):
        other.reply("send-1")


def test_mailgun_forwards_a_form_with_a_signature_among_its_fields(start: Start, receiver: Receiver) -> None:
    sim = start(dialect="mailgun", webhooks={"replies_url": receiver.url, "secret": "signs"})
    form = b"from=shop%40example.test&to=ada%40example.test&subject=Hi&text=Hi&v%3Asend_id=send-1"
    headers = {
        "authorization": "Basic " + base64.b64encode(b"api:key").decode(),
        "content-type": "application/x-www-form-urlencoded",
    }
    assert Client(sim).call("POST", "/v3/mg.example.test/messages", form, headers=headers).status == 200
    assert sim.reply("send-1", text="Yes") == 204
    said = {name: values[0] for name, values in parse_qs(receiver.arrivals[0].body.decode()).items()}
    assert {"timestamp", "token", "signature", "recipient", "sender", "from", "subject", "body-plain"} <= said.keys()
    pairs = dict(json.loads(said["message-headers"]))
    assert pairs["In-Reply-To"] == f"<{sim.books[0].message_id}>", "Mailgun's id of a message is its Message-Id"
    assert (said["stripped-text"], said["recipient"]) == ("Yes", "shop@example.test")
