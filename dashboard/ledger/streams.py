"""Mailstreams: one kind of mail each, the defaults of its class (DESIGN §1), and what no mailstream may be set to."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import LiteralString
from uuid import UUID

from dashboard.ledger import audit
from dashboard.ledger.database import Connection
from dashboard.ledger.tables import Policy
from dashboard.lifecycle import BULK, MailClass

_DOMAIN = re.compile(r"(?=.{4,200}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}")
"""In lower-case IDNA form, since it is written into headers as it stands."""

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class BadStream(ValueError):
    """A mailstream whose rules contradict each other or its account; the text says which and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a mailstream treats doubt, lateness and retries."""

    unknown_policy: Policy
    """What becomes of an unknown send after its grace period."""
    grace: timedelta
    too_late_after: timedelta | None
    late_policy: Policy = Policy.HOLD
    max_attempts: int
    retry_for: timedelta
    retain_for: timedelta | None = None
    """How long after its end a send keeps its message and all that is personal. None: for ever."""
    second_person: bool = False
    """Each decision about a held send of it is agreed to by a second person."""
    batches: bool = False
    """Its sends may share a call with others, where the provider takes several messages with one."""
    reply_domain: str | None = None
    """Where mail answers its sends: those without a Reply-To of their own get an address of their own there, from when
    they are recorded."""


DEFAULTS: dict[MailClass, Rules] = {
    MailClass.SECURITY: Rules(
        unknown_policy=Policy.CANCEL, grace=timedelta(minutes=15), too_late_after=timedelta(minutes=10),
        late_policy=Policy.CANCEL, max_attempts=5, retry_for=HOUR,
    ),
    MailClass.TRANSACTIONAL: Rules(
        unknown_policy=Policy.RELEASE, grace=timedelta(minutes=30), too_late_after=None, max_attempts=20,
        retry_for=3 * DAY,
    ),
    MailClass.LIFECYCLE: Rules(
        unknown_policy=Policy.HOLD, grace=2 * HOUR, too_late_after=DAY, late_policy=Policy.CANCEL, max_attempts=10,
        retry_for=DAY,
    ),
    MailClass.SCHEDULED: Rules(
        unknown_policy=Policy.HOLD, grace=2 * HOUR, too_late_after=12 * HOUR, max_attempts=20, retry_for=2 * DAY,
    ),
    MailClass.CAMPAIGN: Rules(
        unknown_policy=Policy.HOLD, grace=HOUR, too_late_after=4 * HOUR, max_attempts=5, retry_for=4 * HOUR,
    ),
}  # fmt: skip
"""The defaults of each class. A transactional send is released only where its account honours keys, else held."""


def rules_for(mail_class: MailClass, key_window: timedelta | None) -> Rules:
    """The defaults of a class on an account with this key window (None: it honours no keys).

    Where keys count for minutes only, doubt is released after a third of them, while they still do.
    """
    rules = DEFAULTS[mail_class]
    if rules.unknown_policy is not Policy.RELEASE:
        return rules
    if key_window is None:
        return replace(rules, unknown_policy=Policy.HOLD)
    return replace(rules, grace=min(rules.grace, key_window / 3))


def save_stream(
    connection: Connection,
    *,
    workspace_id: UUID,
    name: str,
    mail_class: MailClass,
    account_id: UUID,
    title: str = "",
    owner: str = "",
    rules: Rules | None = None,
) -> None:
    """Make a mailstream, or change the one of that name. Raises :class:`BadStream`.

    The class of a mailstream with open sends changes with them, since claims go by class. Where it changes what becomes
    of a late one, those that are held are looked at again.
    """
    found = connection.execute(
        "select key_window, settling_time from sendonce.accounts where id = %s and workspace_id = %s",
        (account_id, workspace_id),
    ).fetchone()
    before = read_stream(connection, workspace_id, name)
    if found is None:
        raise BadStream("the account of this mailstream is not in its workspace")
    chosen = rules or rules_for(mail_class, found[0])
    check_rules(chosen, key_window=found[0], settling_time=found[1])
    if chosen.batches and mail_class not in BULK:
        raise BadStream(
            f"{mail_class} mail goes one by one, so that no call of it is in doubt because of another:"
            f" only {', '.join(c for c in MailClass if c in BULK)} mailstreams may send in batches"
        )
    connection.execute(
        """
        insert into sendonce.mailstreams (workspace_id, name, title, owner, mail_class, account_id, unknown_policy,
          grace, too_late_after, late_policy, max_attempts, retry_for, retain_for, second_person, batches,
          reply_domain)
        values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
        on conflict (workspace_id, name) do update set title = excluded.title, owner = excluded.owner,
          mail_class = excluded.mail_class, account_id = excluded.account_id, unknown_policy = excluded.unknown_policy,
          grace = excluded.grace, too_late_after = excluded.too_late_after, late_policy = excluded.late_policy,
          max_attempts = excluded.max_attempts, retry_for = excluded.retry_for, retain_for = excluded.retain_for,
          second_person = excluded.second_person, batches = excluded.batches,
          reply_domain = excluded.reply_domain
        """,
        (
            workspace_id, name, title, owner, str(mail_class), account_id, str(chosen.unknown_policy), chosen.grace,
            chosen.too_late_after, str(chosen.late_policy), chosen.max_attempts, chosen.retry_for,
            chosen.retain_for, chosen.second_person, chosen.batches, chosen.reply_domain,
        ),
    )  # fmt: skip
    connection.execute(
        "update sendonce.work set mail_class = %s where workspace_id = %s and mailstream = %s and mail_class <> %s",
        (str(mail_class), workspace_id, name, str(mail_class)),
    )
    if before is not None and _lateness(before.rules) != _lateness(chosen):
        connection.execute(
            "update sendonce.work set check_at = now() where workspace_id = %s and mailstream = %s and state = 'held'",
            (workspace_id, name),
        )


def _lateness(rules: Rules) -> tuple[timedelta | None, Policy]:
    return rules.too_late_after, rules.late_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A mailstream as it is configured."""

    name: str
    title: str
    owner: str
    mail_class: MailClass
    account_id: UUID
    rules: Rules


def read_stream(connection: Connection, workspace_id: UUID, name: str) -> Stream | None:
    """The mailstream of that name."""
    return next(iter(_streams(connection, "workspace_id = %s and name = %s", workspace_id, name)), None)


def streams_of_account(connection: Connection, account_id: UUID) -> list[Stream]:
    """The mailstreams that send by this account, by name."""
    return _streams(connection, "account_id = %s", account_id)


def _streams(connection: Connection, where: LiteralString, *given: object) -> list[Stream]:
    rows = connection.execute(
        f"""
        select name, title, owner, mail_class, account_id, unknown_policy, grace, too_late_after, late_policy,
          max_attempts, retry_for, retain_for, second_person, batches, reply_domain
        from sendonce.mailstreams where {where} order by name
        """,  # noqa: S608  # the condition is a literal of this file
        given,
    )
    return [
        Stream(
            name=name, title=title, owner=owner, mail_class=MailClass(mail_class), account_id=account_id,
            rules=Rules(
                unknown_policy=Policy(r[0]), grace=r[1], too_late_after=r[2], late_policy=Policy(r[3]),
                max_attempts=r[4], retry_for=r[5], retain_for=r[6], second_person=r[7], batches=r[8],
                reply_domain=r[9],
            ),
        )
        for name, title, owner, mail_class, account_id, *r in rows
    ]  # fmt: skip


def pause_by_person(
    connection: Connection, *, workspace_id: UUID, name: str, reason: str, user_id: UUID | None = None
) -> bool:
    """Start no attempt of this mailstream until it is resumed, with an audit row. False where there is none such."""
    done = connection.execute(
        "update sendonce.mailstreams set paused_at = coalesce(paused_at, now()), paused_reason = %s"
        " where workspace_id = %s and name = %s",
        (reason, workspace_id, name),
    )
    return _written(connection, done.rowcount, audit.Action.PAUSE_STREAM, workspace_id, name, reason, user_id)


def resume_by_person(
    connection: Connection, *, workspace_id: UUID, name: str, user_id: UUID | None = None, reason: str | None = None
) -> bool:
    """End a pause; what waits leaves at once. With an audit row. False where there is no mailstream of that name."""
    done = connection.execute(
        "update sendonce.mailstreams set paused_at = null, paused_reason = null where workspace_id = %s and name = %s",
        (workspace_id, name),
    )
    return _written(connection, done.rowcount, audit.Action.RESUME_STREAM, workspace_id, name, reason, user_id)


def pause_workspace(connection: Connection, *, workspace_id: UUID, reason: str, user_id: UUID | None = None) -> str:
    """Start no attempt of any mailstream of this workspace until it is resumed, with an audit row. Returns its name."""
    row = connection.execute(
        "update sendonce.workspaces set paused_at = coalesce(paused_at, now()), paused_reason = %s where id = %s"
        " returning name",
        (reason, workspace_id),
    ).fetchone()
    assert row is not None, "whoever may ask is of the workspace"
    audit.record(
        connection, audit.Action.PAUSE_WORKSPACE, workspace_id=workspace_id, user_id=user_id, subject=row[0],
        reason=reason,
    )  # fmt: skip
    return str(row[0])


def read_pause(connection: Connection, workspace_id: UUID) -> str | None:
    """Why all sending of a workspace is paused; None where it is not."""
    row = connection.execute("select paused_reason from sendonce.workspaces where id = %s", (workspace_id,)).fetchone()
    return row[0] if row else None


def resume_workspace(
    connection: Connection, *, workspace_id: UUID, user_id: UUID | None = None, reason: str | None = None
) -> str:
    """End a pause of a workspace, with an audit row; what waits leaves at once, but for mailstreams and accounts that
    are paused too. Returns its name."""
    row = connection.execute(
        "update sendonce.workspaces set paused_at = null, paused_reason = null where id = %s returning name",
        (workspace_id,),
    ).fetchone()
    assert row is not None, "whoever may ask is of the workspace"
    audit.record(
        connection, audit.Action.RESUME_WORKSPACE, workspace_id=workspace_id, user_id=user_id, subject=row[0],
        reason=reason,
    )  # fmt: skip
    return str(row[0])


def _written(
    connection: Connection, found: int, action: audit.Action, workspace_id: UUID, name: str, reason: str | None,
    user_id: UUID | None,
) -> bool:  # fmt: skip
    if found:
        audit.record(
            connection, action, workspace_id=workspace_id, user_id=user_id, subject=name, reason=reason
        )  # fmt: skip
    return found == 1


def check_rules(rules: Rules, *, key_window: timedelta | None, settling_time: timedelta | None) -> None:
    """Raise :class:`BadStream` for rules that make no sense on an account with this key window and settling time."""
    if rules.reply_domain is not None and not _DOMAIN.fullmatch(rules.reply_domain):
        raise BadStream("the reply domain is the domain whose mail the provider takes in, such as reply.shop.example")
    if rules.unknown_policy is Policy.RELEASE and key_window is None:
        raise BadStream("release after doubt needs an account that honours idempotency keys: choose hold or cancel")
    if rules.unknown_policy is Policy.RELEASE and key_window is not None and rules.grace >= key_window:
        raise BadStream("the grace period is longer than the provider remembers keys: nothing could be released")
    if settling_time is not None and rules.grace < settling_time:
        raise BadStream("the grace period is shorter than the time the provider's look-up needs to settle")
    if rules.late_policy is Policy.RELEASE:
        raise BadStream("what is too late cannot be released by a policy: choose hold or cancel")
