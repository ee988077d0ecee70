"""``sendonce investigate``: what the complaint page says, for terminals and programs."""

from __future__ import annotations

import json
import os
from datetime import datetime
from typing import TextIO
from uuid import UUID
from zoneinfo import ZoneInfo

import click

from dashboard.cli import Mistake
from dashboard.cli.options import example, json_option, workspace_option
from dashboard.identity import discreet
from dashboard.insight.case import Answer, Case, Complaint, Finding
from dashboard.insight.complaints import investigate as judge
from dashboard.insight.complaints import not_looked_into
from dashboard.insight.pasted import message_ids
from dashboard.insight.replies import LANGUAGE, reply
from dashboard.insight.told import Fact, case_of, document, facts
from dashboard.insight.when import BadTime, read_when
from dashboard.ledger.access import Refused, find_workspace
from dashboard.ledger.database import Database, database_now
from dashboard.ledger.evidence import Question, read_evidence
from dashboard.ledger.investigations import Investigation
from dashboard.ledger.replies import read_replies
from dashboard.ledger.vault import Vault
from dashboard.settings import read_settings


@click.command(
    epilog=example(
        "sendonce investigate --who order_84721 --complaint twice --at 'yesterday evening'",
        "sendonce investigate --who ada@example.com --complaint never --zone Europe/Berlin --json",
    )
)
@click.option("--who", required=True, help="Whom or what it is about: anything that `sendonce trace` takes.")
@click.option(
    "--complaint", required=True, type=click.Choice([one.value for one in Complaint]), help="What the customer says."
)
@click.option("--at", "when", default="", metavar="T", help="About when: 'yesterday evening', '30 Nov 20:15', ...")
@click.option("--zone", default="UTC", show_default=True, help="The customer's time zone, like Europe/Berlin.")
@click.option(
    "--headers",
    type=click.File(errors="replace"),
    metavar="FILE",
    help="The headers of both copies, - for standard input.",
)
@workspace_option
@json_option
def investigate(
    who: str, complaint: str, when: str, zone: str, headers: TextIO | None, workspace: str, as_json: bool
) -> int:
    """Find out what a complaint comes from, and what to answer.

    Where nothing is known about it: exit code 1.
    """
    settings = read_settings(os.environ)
    place = _zone(zone)
    pasted = message_ids(headers.read()) if headers else ()
    database = Database(settings.database_url, pool_size=1, application_name="sendonce investigate")
    vault = Vault(settings.encryption_keys)
    try:
        with database.snapshot() as connection:
            workspace_id = find_workspace(connection, workspace)
            wordings = read_replies(connection, workspace_id).get(LANGUAGE, {})
            around = read_when(when, database_now(connection).astimezone(place))
        asked = Investigation(
            who=who, complaint=complaint, zone=zone, message_ids=pasted,
            since=around[0] if around else None, until=around[1] if around else None,
        )  # fmt: skip
        case = _case(database, vault, workspace_id, asked, place)
    except (Refused, BadTime) as error:
        raise Mistake(str(error)) from None
    finally:
        database.close()
    answer = judge(case)
    click.echo(json.dumps(document(case, answer, wordings), indent=2) if as_json else _text(case, answer, wordings))
    return 1 if answer.finding is Finding.NOTHING_KNOWN else 0


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise Mistake(f"the time zone {name} is not known; write it like Europe/Berlin") from None


def _case(database: Database, vault: Vault, workspace_id: UUID, asked: Investigation, zone: ZoneInfo) -> Case:
    around = (asked.since, asked.until) if asked.since and asked.until else None
    question = Question(who=asked.who, around=around)
    evidence = read_evidence(database, vault, workspace_id=workspace_id, question=question)
    return case_of(asked, evidence, evidence.now.astimezone(zone))


def _text(case: Case, answer: Answer, wordings: dict[str, str]) -> str:
    lines = [f"{answer.sentence}.", f"{answer.sureness.replace('_', ' ')} · {answer.next}"]
    if answer.would_tell and answer.would_tell != answer.next:
        lines.append(f"what would tell: {answer.would_tell}")
    lines += ["", "Reply:", f"  {reply(answer, case.now, wordings)}", ""]
    lines += [_line(fact, case.now) for fact in facts(case, answer)]
    open_causes = not_looked_into(case.complaint)
    if open_causes:
        lines += ["", "Not looked into: " + "; ".join(f"{one.what} ({one.rests_on})" for one in open_causes) + "."]
    return "\n".join(lines).rstrip()


def _line(fact: Fact, now: datetime) -> str:
    time = f"{fact.at.astimezone(now.tzinfo):%Y-%m-%d %H:%M:%S}" if fact.at else " " * 19
    told = (discreet(fact.who), discreet(fact.detail), f"send {fact.proof.send}" if fact.proof.send else "")
    about = " · ".join(filter(None, told))
    return f"{time}  {fact.what} · {about}" if about else f"{time}  {fact.what}"
