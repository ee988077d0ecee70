"""DMARC: what a receiver is asked to do with mail that neither SPF nor DKIM shows to be the domain's (RFC 7489)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dashboard.providers.dkim import tags
from dashboard.providers.findings import Finding, Verdict
from dashboard.providers.names import Names, Unanswered
from dashboard.providers.wording import for_people

MOST_PARENTS = 4
POLICIES = ("none", "quarantine", "reject")
_RECORD = re.compile(r"v\s*=\s*DMARC1\s*(;|$)")


def check_dmarc(names: Names, domain: str) -> list[Finding]:
    """What is wrong with the policy of a domain; a good finding where nothing is.

    A domain without one falls under its organisation's (§6.6.3). Which parent that is, only a list of public suffixes
    could tell: here all are asked, nearest first, down to two labels.
    """
    looks_like = ""
    for at in _asked(domain):
        name = f"_dmarc.{at}"
        texts = names.texts(name)
        if isinstance(texts, Unanswered):
            return [Finding("dmarc", "unknown", f"{name} could not be looked up: {texts.why}.", about=domain)]
        records = [text for text in texts if _RECORD.match(text)]
        if len(records) > 1:
            return [
                Finding(
                    "dmarc", "wrong", f"{name} has {len(records)} DMARC records, so that none counts. Keep one.",
                    about=domain, rule="RFC 7489 §6.6.3",
                )
            ]  # fmt: skip
        if records:
            return [_judged(domain, at, tags(records[0]))]
        looks_like = looks_like or next((text for text in texts if "dmarc" in text.lower()), "")
    words = "There is no DMARC record: receivers are asked for nothing, and large ones refuse bulk mail without one."
    if looks_like:
        words = f"“{for_people(looks_like, 80)}” looks like a DMARC record and is none: one begins with v=DMARC1;"
    return [
        Finding(
            "dmarc", "wrong", words, about=domain, rule="RFC 7489 §6.6.3",
            publish=f"_dmarc.{domain} TXT \"v=DMARC1; p=none; rua=mailto:‹where reports go›\", and p=reject once the"
            " reports show only your own mail",
        )
    ]  # fmt: skip


def _asked(domain: str) -> Iterator[str]:
    labels = domain.split(".")
    yield domain
    for begin in range(1, max(len(labels) - 1, 1))[-MOST_PARENTS:]:
        yield ".".join(labels[begin:])


def _judged(domain: str, at: str, record: dict[str, str]) -> Finding:
    def say(verdict: Verdict, words: str, section: str = "", publish: str = "") -> Finding:
        rule = f"RFC 7489 {section}" if section else ""
        return Finding("dmarc", verdict, f"{words}{reports}", about=domain, rule=rule, publish=publish)

    reports = "" if record.get("rua") else " Nobody gets reports: add rua=mailto:… to see who sends as this domain."
    where = "" if at == domain else f" (of _dmarc.{at})"
    own = record.get("p", "").lower()
    if own not in POLICIES and not record.get("rua"):
        return say("wrong", f"The policy{where} is none of {', '.join(POLICIES)}, so that it counts for nothing.",
                   "§6.3, §6.6.3", f"_dmarc.{at} TXT \"v=DMARC1; p=none; rua=mailto:‹where reports go›\"")  # fmt: skip
    sub = record.get("sp", "").lower()
    policy = sub if at != domain and sub in POLICIES else own if own in POLICIES else "none"
    share = record.get("pct", "100")
    if policy == "none":
        return say(
            "weak", f"The policy{where} is none: forged mail is reported, and delivered all the same.", "§6.3",
            f"p=quarantine or p=reject in _dmarc.{at}, once the reports show only your own mail",
        )  # fmt: skip
    if share != "100":
        return say(
            "weak", f"The policy{where} is {policy}, for {for_people(share, 10)} % of the mail alone (pct).", "§6.3"
        )
    return say("good", f"The policy{where} is {policy}.")
