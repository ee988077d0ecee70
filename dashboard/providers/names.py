"""Asking the DNS, within a time that is bounded over all questions together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import dns.exception
import dns.name
import dns.nameserver
import dns.rdatatype
import dns.resolver

QUERY_SECONDS = 3.0
"""For one question, repeats and the way over TCP included."""
TRY_SECONDS = 1.0
"""For one datagram, which may be lost."""
ALL_SECONDS = 12.0
"""For all questions of one check."""
MOST_RECORDS, LONGEST_RECORD = 50, 4096
"""So much of one answer is looked at."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Nobody knows, and why."""

    why: str


class Names:
    """Asks name servers. Each question is asked once; one that comes after the time is over is not asked at all."""

    def __init__(self, servers: Sequence[tuple[str, int]] = (), *, seconds: float = ALL_SECONDS) -> None:
        """``servers``: address and port of each; none: those that the machine is configured with."""
        self._until = time.monotonic() + seconds
        self._answers: dict[tuple[str, str], tuple[str, ...] | Unanswered] = {}
        self._resolver: dns.resolver.Resolver | None = None
        try:
            self._resolver = dns.resolver.Resolver(configure=not servers)
        except dns.resolver.NoResolverConfiguration:
            return
        if servers:
            self._resolver.nameservers = [dns.nameserver.Do53Nameserver(address, port) for address, port in servers]
        self._resolver.timeout = TRY_SECONDS

    def texts(self, name: str) -> tuple[str, ...] | Unanswered:
        """The TXT records of a name, the strings of each put together without a space (RFC 7208 §3.3); none is ()."""
        return self.records(name, "TXT")

    def records(self, name: str, kind: str) -> tuple[str, ...] | Unanswered:
        """The records of a kind, as text; () where there are none, or no such name."""
        key = (name.lower().rstrip("."), kind)
        if key not in self._answers:
            self._answers[key] = self._ask(*key)
        return self._answers[key]

    def _ask(self, name: str, kind: str) -> tuple[str, ...] | Unanswered:
        if self._resolver is None:
            return Unanswered("this machine has no name server: set SENDONCE_DNS_SERVERS")
        left = self._until - time.monotonic()
        if left <= 0:
            return Unanswered("the time for this check is over")
        try:
            whole = dns.name.from_text(name)
        except dns.exception.DNSException:
            return ()  # no name at all: nothing can stand there
        try:
            answer = self._resolver.resolve(whole, kind, lifetime=min(QUERY_SECONDS, left), search=False)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return ()
        except dns.resolver.LifetimeTimeout:
            return Unanswered("no name server answered in time")
        except dns.resolver.NoNameservers:
            return Unanswered("the name servers could not tell")
        except (dns.exception.DNSException, OSError) as error:
            return Unanswered(f"the answer could not be used ({type(error).__name__})")
        rdatas = list(answer)[:MOST_RECORDS]
        if kind == "TXT":
            return tuple(b"".join(one.strings).decode(errors="replace")[:LONGEST_RECORD] for one in rdatas)
        return tuple(one.to_text()[:LONGEST_RECORD] for one in rdatas)
