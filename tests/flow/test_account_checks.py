"""The daily check of an account: whose turn it is, what it looks at, what it stores, and who is told when it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from dashboard.insight.checked import document
from dashboard.ledger import alert_rules
from dashboard.ledger.account_checks import (
    AccountCheck,
    ask_for_check,
    new_standing,
    read_check,
    save_check,
    sending_domains,
    take_check,
)
from dashboard.ledger.accounts import save_account
from dashboard.ledger.database import database_now
from dashboard.ledger.mail_replies import set_aside
from dashboard.ledger.vault import Vault
from dashboard.settings import Settings
from dashboard.worker.alert import look
from dashboard.worker.check import check_one
from tests.crew import ask
from tests.name_server import NameServer
from tests.place import KEYS, Place
from tests.providers.rig import refused_port

SPF, DMARC = 'TXT "v=spf1 ip4:192.0.2.1 -all"', 'TXT "v=DMARC1; p=reject; rua=mailto:d@example.com"'


@dataclass
class Post:
    """A ledger whose account sends by SMTP, and the DNS of its domain."""

    place: Place
    zone: dict[str, list[str] | str] = field(
        default_factory=lambda: {"example.com": [SPF], "_dmarc.example.com": [DMARC]}
    )

    def check(self) -> bool:
        """What a worker's loop does."""
        with NameServer(self.zone) as server:
            settings = Settings(
                database_url="unused", secret_key="s" * 40, encryption_keys=KEYS, dns_servers=server.servers
            )
            return check_one(self.place.database, self.place.vault, settings)

    def stored(self) -> AccountCheck:
        """What the page shows."""
        with self.place.database.transaction() as connection:
            found = read_check(connection, self.place.workspace, "main")
        assert found is not None
        return found

    def verdicts(self) -> dict[str, str]:
        """Of each question."""
        return {finding["what"]: finding["verdict"] for finding in self.stored().findings}

    def ask(self) -> bool:
        """Press the button."""
        with self.place.database.transaction() as connection:
            return ask_for_check(connection, workspace_id=self.place.workspace, name="main")

    def older(self, by: str) -> None:
        """Let time pass."""
        self.place.run("update sendonce.accounts set created_at = created_at - %s::interval", by)
        self.place.run("update sendonce.account_checks set checked_at = checked_at - %s::interval,"
                       " taken_at = taken_at - %s::interval", by, by)  # fmt: skip


@pytest.fixture
def post(place: Place) -> Iterator[Post]:
    with place.database.transaction() as connection:
        save_account(
            connection, place.vault, workspace_id=place.workspace, name="main", provider="smtp",
            settings={"host": "127.0.0.1", "port": str(refused_port()), "security": "none"}, secrets={},
            endpoint="here",
        )  # fmt: skip
    return Post(place)


def test_an_account_is_checked_an_hour_after_it_was_added_and_a_day_after_that(post: Post) -> None:
    assert post.check() is False
    post.older("61 minutes")
    assert post.check() is True
    assert post.check() is False
    post.older("23 hours")
    assert post.check() is False
    post.older("2 hours")
    assert post.check() is True


def test_one_worker_has_it_at_a_time_and_one_that_ended_loses_it(post: Post) -> None:
    def take() -> Any:
        with post.place.database.transaction() as connection:
            return take_check(connection)

    post.ask()
    assert take() == post.place.account
    assert post.stored().under_way
    assert (take(), post.check()) == (None, False)
    post.older("4 minutes")
    assert post.check() is True
    assert not post.stored().awaited


def test_asking_is_written_down_once_and_answered_once(post: Post) -> None:
    assert post.ask()
    assert post.ask()
    assert post.stored().awaited
    assert post.check() is True
    assert post.check() is False
    assert post.place.all("select subject from sendonce.audit where action = 'check_account'") == [{"subject": "main"}]
    with post.place.database.transaction() as connection:
        assert ask_for_check(connection, workspace_id=post.place.workspace, name="other") is False


def test_the_domains_are_those_of_the_newest_mail_and_what_cannot_be_read_is_passed_over(post: Post) -> None:
    senders = ["Shop <shop@example.com>", "a@EXAMPLE.com", '"x@y.example" <b@münchen.example>']
    for number, sender in enumerate(senders):
        ask(post.place, f"k:{number}", message={"from": sender, "subject": "s", "text": "t"})
    with post.place.database.transaction() as connection:
        assert sending_domains(connection, post.place.vault, post.place.account) == [
            "example.com", "xn--mnchen-3ya.example",
        ]  # fmt: skip
        other = Vault([("k2", b"x" * 32)])
        assert sending_domains(connection, other, post.place.account) == []


def test_the_domains_at_which_its_mailstreams_take_replies_are_looked_at_too(post: Post) -> None:
    post.place.run("update sendonce.mailstreams set reply_domain = 'reply.nowhere.example' where name = 'receipts'")
    post.ask()
    assert post.check() is True
    (told,) = [one for one in post.stored().findings if one["what"] == "replies"]
    assert (told["about"], told["verdict"]) == ("reply.nowhere.example", "wrong")


def test_what_was_well_and_breaks_raises_the_alert_and_mending_it_ends_that(post: Post) -> None:
    ask(post.place, "k:1", message={"from": "shop@example.com", "subject": "s", "text": "t"})
    with post.place.database.transaction() as connection:
        alert_rules.add_defaults(connection, post.place.workspace)

    def states() -> tuple[bool, str]:
        post.ask()
        post.check()
        with post.place.database.transaction() as connection:
            look(connection, every=timedelta())
            rule = alert_rules.find_rule(connection, post.place.workspace, "account-broken")
        assert rule is not None
        return post.stored().broke_at is not None, str(rule.state)

    assert states() == (False, "quiet")
    assert post.verdicts() == {"credentials": "wrong", "spf": "good", "dkim": "unknown", "dmarc": "good"}
    post.zone["example.com"] = [SPF, SPF.replace("-all", "~all")]
    assert states() == (True, "firing")
    post.zone["example.com"] = "broken"
    assert states() == (True, "firing"), "a name server's bad hour mends nothing"
    post.zone["example.com"] = [SPF]
    assert states() == (False, "clearing")


def test_an_account_whose_secrets_cannot_be_read_is_told_so(post: Post) -> None:
    post.place.run("update sendonce.accounts set secrets = 'no cipher text'")
    post.ask()
    assert post.check()
    assert post.verdicts() == {"credentials": "unknown"}


def test_the_standing_of_a_question_is_its_last_known_answer() -> None:
    def finding(what: str, verdict: str) -> dict[str, str]:
        return {"what": what, "verdict": verdict, "about": ""}

    once = new_standing({}, [finding("spf", "good"), finding("dkim", "wrong"), finding("dmarc", "unknown")])
    assert once == {"spf": "well", "dkim": "never"}
    later = new_standing(once, [finding("spf", "weak"), finding("spf", "wrong"), finding("dkim", "wrong")])
    assert later == {"spf": "broken", "dkim": "never"}
    assert new_standing(later, [finding("spf", "unknown")]) == {"spf": "broken"}
    assert new_standing(later, [finding("spf", "weak")]) == {"spf": "well"}


def test_programs_are_told_the_same_with_the_address_to_paste(post: Post) -> None:
    told = document(post.stored(), "https://mail.example.com")
    assert (told["verdict"], told["checked_at"], told["webhook_url"]) == (None, None, None), "SMTP reports nothing"
    post.place.run("update sendonce.accounts set provider = 'resend'")
    with post.place.database.transaction() as connection:
        take_check(connection, post.place.account)
        save_check(connection, post.place.account, [{"what": "spf", "verdict": "weak", "about": "example.com"}])
    told = document(post.stored(), "https://mail.example.com")
    assert told["webhook_url"] == f"https://mail.example.com/webhooks/{post.place.account}"
    assert told["replies_url"] is None, "Resend hands in no mail"
    assert (told["verdict"], told["findings"][0]["about"]) == ("weak", "example.com")


def test_programs_are_told_where_mail_is_to_be_handed_in_and_what_came_there_for_nothing(post: Post) -> None:
    post.place.run("update sendonce.accounts set provider = 'postmark'")
    with post.place.database.transaction() as connection:
        set_aside(
            connection, workspace_id=post.place.workspace, account_id=post.place.account, content=b"{",
            reason="malformed", received_at=database_now(connection),
        )  # fmt: skip
    told = document(post.stored(), "https://mail.example.com")
    assert told["replies_url"] == f"https://mail.example.com/webhooks/{post.place.account}/replies"
    assert [(one["reason"], one["number"]) for one in told["set_aside"]] == [("malformed", 1)]
