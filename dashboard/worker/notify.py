"""Notify: tell people what the alerts say, on their channels, until it arrived or is given up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC

from dashboard.channels import Arrived, News, NotArrived, Outcome, email, slack, webhook
from dashboard.insight.alert_words import NEXT_STEPS, amount, headline
from dashboard.ledger import alerts
from dashboard.ledger.alert_channels import Target, open_target
from dashboard.ledger.alerts import NoticeToSend
from dashboard.ledger.database import Database
from dashboard.ledger.measures import FACTS, Measure
from dashboard.ledger.tables import ChannelKind, NoticeKind
from dashboard.ledger.vault import Unreadable, Vault
from dashboard.log import Action, log
from dashboard.settings import Settings
from dashboard.worker.meters import NOTICES


@dataclass(frozen=True, slots=True)
class Notifier:
    """Takes notices and sends them, one after the other."""

    database: Database
    vault: Vault
    settings: Settings

    def tell_one(self) -> bool:
        """Send the notice that waits longest. Returns whether there was one."""
        with self.database.transaction() as connection:
            taken = alerts.take_notices(connection, limit=1)
        for notice in taken:
            outcome = self._sent(notice)
            NOTICES.labels(str(notice.channel_kind), "arrived" if isinstance(outcome, Arrived) else "failed").inc()
            with self.database.transaction() as connection:
                match outcome:
                    case Arrived():
                        alerts.notice_sent(connection, notice.id)
                    case NotArrived(error=error, for_good=for_good):
                        alerts.notice_failed(connection, notice, error=error, for_good=for_good)
                        log.warning(Action.NOTICE_FAILED, notice=notice.id, tries=notice.tries, why=error)
        return bool(taken)

    def _sent(self, notice: NoticeToSend) -> Outcome:
        try:
            target = open_target(self.vault, notice.channel_id, notice.target)
        except Unreadable:
            return NotArrived("where it goes cannot be decrypted with the configured keys")
        try:
            return self._call(ChannelKind(notice.channel_kind), target, news_of(notice, self.settings.public_url))
        except Exception as error:  # a bug of ours must not keep all others from being told
            return NotArrived(f"it could not be sent ({type(error).__name__})")

    def _call(self, kind: ChannelKind, target: Target, news: News) -> Outcome:
        private = self.settings.alert_private_targets
        match kind:
            case ChannelKind.WEBHOOK:
                return webhook.send(news, url=target.url, secret=target.secret, private=private)
            case ChannelKind.SLACK:
                return slack.send(news, url=target.url, private=private)
            case ChannelKind.EMAIL:
                return email.send(
                    news, server=self.settings.alert_smtp_url, sender=self.settings.alert_from, to=target.addresses
                )


def news_of(notice: NoticeToSend, public_url: str) -> News:
    """A notice in words and in figures."""
    link, name = f"{public_url}/alerts", f"notice_{notice.id}"
    kind = NoticeKind(notice.kind)
    if notice.rule is None or notice.measure is None or notice.value is None or notice.threshold is None:
        return News(
            id=name, event="alert.test", at=notice.made_at, headline=f"A test from Sendonce ({notice.workspace})",
            lines=("Alerts of this workspace arrive here.",), link=link, facts={"workspace": notice.workspace},
        )  # fmt: skip
    measure = Measure(notice.measure)
    facts: dict[str, object] = {
        "alert": notice.alert_id, "workspace": notice.workspace, "rule": notice.rule, "measure": measure.value,
        "mailstream": notice.mailstream or None, "severity": str(notice.severity), "value": notice.value,
        "threshold": notice.threshold, "unit": FACTS[measure].unit.value,
        "opened_at": notice.opened_at and notice.opened_at.astimezone(UTC).isoformat(),
        "closed_at": notice.closed_at and notice.closed_at.astimezone(UTC).isoformat(),
    }  # fmt: skip
    lines = [f"Rule {notice.rule}, {notice.severity}: {FACTS[measure].meaning}."]
    if kind is NoticeKind.FIRED:
        lines.append(NEXT_STEPS[measure])
    else:
        lines.append(f"At worst it was {amount(notice.value, FACTS[measure].unit)}.")
    if notice.opened_at:
        lines.append(f"It began at {notice.opened_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC.")
    return News(
        id=name, event=f"alert.{kind.value}", at=notice.made_at,
        headline=headline(
            kind, measure=measure, value=notice.value, threshold=notice.threshold,
            mailstream=notice.mailstream or "", workspace=notice.workspace,
        ),
        lines=tuple(lines), link=link, facts=facts,
    )  # fmt: skip
