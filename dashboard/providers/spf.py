"""SPF: which servers may send in the name of a domain (RFC 7208).

The record is read as a receiver reads it, with all that it includes, but for no particular server: whether the
provider's servers are among those allowed is not judged.
"""

from __future__ import annotations

import ipaddress
import re

from dashboard.providers.findings import Finding, Verdict
from dashboard.providers.names import Names, Unanswered
from dashboard.providers.wording import for_people

MOST_LOOK_UPS = 10
"""Terms that ask the DNS, over all records together; one more, and the record counts for nothing (§4.6.4)."""
MOST_EMPTY = 2
"""Of those, how many may find nothing (§4.6.4)."""
_MECHANISM = re.compile(r"([+?~-]?)(all|include|a|mx|ptr|ip4|ip6|exists)(?![a-z0-9_.-])(:[^/]*(?:/.*)?|/.*)?", re.I)
_MODIFIER = re.compile(r"([a-z][a-z0-9_.-]*)=(.*)", re.I)
_PREFIX = re.compile(r"(/[0-9]{1,3})?(//[0-9]{1,3})?$")


def check_spf(names: Names, domain: str, *, title: str, own_return_path: bool) -> list[Finding]:
    """What is wrong with the SPF record of a domain; a good finding where nothing is.

    ``title``: the provider's. ``own_return_path``: mail leaves with a return path of this very domain.
    """
    return _Reading(names, domain, title).findings(own_return_path=own_return_path)


def _records(texts: tuple[str, ...]) -> list[str]:
    """Those that are SPF records at all (§4.5): the version, and then a space or the end."""
    return [text for text in texts if re.match(r"v=spf1( |$)", text, re.I)]


class _Reading:
    """One walk over a record and what it includes."""

    def __init__(self, names: Names, domain: str, title: str) -> None:
        self._names, self._domain, self._title = names, domain, title
        self._found: list[Finding] = []
        self._look_ups = 0
        self._empty = 0

    def findings(self, *, own_return_path: bool) -> list[Finding]:
        texts = self._names.texts(self._domain)
        if isinstance(texts, Unanswered):
            self._say("unknown", f"{self._domain} could not be looked up: {texts.why}.")
            return self._found
        records = _records(texts)
        if not records:
            self._without(texts, own_return_path=own_return_path)
        elif len(records) > 1:
            self._two(self._domain, len(records))
        else:
            self._record(self._domain, records[0], at_the_end=True)
        if self._look_ups > MOST_LOOK_UPS:
            self._say(
                "wrong",
                f"The record needs more than {MOST_LOOK_UPS} look-ups, its includes counted, so receivers give up and"
                " treat it as broken. Take out what no longer sends, or name networks (ip4:) in place of includes.",
                "§4.6.4",
            )
        elif self._empty > MOST_EMPTY:
            self._say(
                "wrong", f"{self._empty} of its terms name what does not exist; receivers give up after {MOST_EMPTY}."
                " Take them out.", "§4.6.4",
            )  # fmt: skip
        if not self._found:
            self._say("good", f"{self._look_ups} of {MOST_LOOK_UPS} look-ups; says which servers may send.")
        return self._found

    def _say(self, verdict: Verdict, words: str, section: str = "", publish: str = "") -> None:
        rule = f"RFC 7208 {section}" if section else ""
        finding = Finding("spf", verdict, words, about=self._domain, rule=rule, publish=publish)
        if finding not in self._found:
            self._found.append(finding)

    def _without(self, texts: tuple[str, ...], *, own_return_path: bool) -> None:
        publish = f'{self._domain} TXT "v=spf1 include:‹what {self._title} names› ~all"'
        if alike := next((text for text in texts if "spf1" in text.lower()), None):
            self._say(
                "wrong", f"“{for_people(alike, 80)}” looks like an SPF record and is none: one begins with v=spf1 and a"
                " space.", "§4.5", publish,
            )  # fmt: skip
        elif own_return_path:
            self._say("wrong", "There is no SPF record, and mail leaves with this domain as its return path.",
                      "§2.4", publish)  # fmt: skip
        else:
            self._say(
                "unknown", f"There is no SPF record. Receivers look at the domain of the return path: where"
                f" {self._title} uses one of its own, or a subdomain made for it, nothing is amiss.", "§2.4",
            )  # fmt: skip

    def _two(self, domain: str, number: int) -> None:
        self._say(
            "wrong", f"{domain} has {number} SPF records, so that none counts. Put all their terms into one record, and"
            " delete the others.", "§3.2, §4.5",
        )  # fmt: skip

    def _record(self, domain: str, record: str, *, at_the_end: bool) -> None:
        """Walk over one record. ``at_the_end``: what it does not match, nothing else will: the first, or a redirect."""
        whole_of_it, redirect = "", ""
        for term in record.split()[1:]:
            if self._look_ups > MOST_LOOK_UPS:
                return
            mechanism, modifier = _MECHANISM.fullmatch(term), _MODIFIER.fullmatch(term)
            if mechanism and whole_of_it:
                self._say("weak", f"“{for_people(term, 80)}” stands after all, where nobody reads it.", "§5.1")
            elif mechanism and mechanism[2].lower() == "all" and not mechanism[3]:
                whole_of_it = mechanism[1] or "+"
            elif mechanism:
                self._mechanism(domain, term, mechanism[2].lower(), mechanism[3] or "")
            elif modifier and modifier[1].lower() == "redirect":
                redirect = modifier[2]
            elif not modifier:
                self._broken(domain, term)
        if whole_of_it == "+":
            self._say(
                "wrong", f"+all in the record of {domain} lets every server in the world send as {self._domain}.",
                "§5.1",
                f"{domain} TXT \"… ~all\" (or -all), in place of +all",
            )  # fmt: skip
        elif whole_of_it == "?" and at_the_end:
            self._say("weak", "?all says nothing about servers that are not named. Use ~all or -all.", "§8.2")
        elif not whole_of_it and redirect:
            self._follow("redirect", redirect, at_the_end=at_the_end)
        elif not whole_of_it and at_the_end:
            self._say("weak", "The record does not end with ~all or -all: of other servers it says nothing.", "§4.7")

    def _broken(self, domain: str, term: str) -> None:
        self._say(
            "wrong", f"“{for_people(term, 80)}” in the record of {domain} is no term of SPF, so that the whole record"
            " counts for nothing.", "§4.6",
        )  # fmt: skip

    def _mechanism(self, domain: str, term: str, name: str, rest: str) -> None:
        value = rest.removeprefix(":")
        if name in ("ip4", "ip6"):
            try:
                network = ipaddress.ip_network(value, strict=False)
            except ValueError:
                return self._broken(domain, term)
            if network.version != int(name[-1]):
                return self._broken(domain, term)
            if network.prefixlen == 0:
                self._say("wrong", f"“{term}” lets every server in the world send as {self._domain}.", "§5.6")
            return None
        if name in ("all", "include", "exists") and (not value or not rest.startswith(":")):
            return self._broken(domain, term)
        if name == "include":
            return self._follow("include", value, at_the_end=False)
        self._look_ups += 1
        if name == "ptr":
            return self._say("weak", "ptr is slow and not to be used; many receivers pass it over.", "§5.5")
        target = _PREFIX.sub("", value) or domain
        if "%" in target or name == "exists":  # depends on the mail
            return None
        kinds = ("MX",) if name == "mx" else ("A", "AAAA")
        answers = [self._names.records(target, kind) for kind in kinds]
        if all(answer == () for answer in answers):
            self._empty += 1
        return None

    def _follow(self, how: str, target: str, *, at_the_end: bool) -> None:
        self._look_ups += 1
        if self._look_ups > MOST_LOOK_UPS or "%" in target:
            return None
        target = target.lower().rstrip(".")
        if target == self._domain:
            return self._say("wrong", f"The record leads back to {target}, in a circle.", "§4.6.4")
        texts = self._names.texts(target)
        if isinstance(texts, Unanswered):
            return self._say("unknown", f"{how} {for_people(target, 80)} could not be looked up: {texts.why}.")
        records = _records(texts)
        if len(records) > 1:
            return self._two(target, len(records))
        if records:
            return self._record(target, records[0], at_the_end=at_the_end)
        self._empty += not texts
        return self._say(
            "wrong", f"{how} {for_people(target, 80)} has no SPF record, so that the whole record counts for nothing.",
            "§5.2" if how == "include" else "§6.1",
        )  # fmt: skip
