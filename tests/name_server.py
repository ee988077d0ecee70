"""A name server on loopback that knows what a test tells it, by UDP and by TCP."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Mapping

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rrset

BIGGEST_DATAGRAM = 512


class NameServer:
    """Answers from ``zone``: names to their records, as a zone file writes them (``TXT "v=spf1 -all"``).

    A name whose value is ``silent`` is never answered, ``broken`` is answered with a failure; all others do not exist.
    """

    def __init__(self, zone: Mapping[str, list[str] | str]) -> None:
        self._zone = {name.lower(): records for name, records in zone.items()}
        self.asked: list[str] = []
        """``name type`` of each question, in order."""
        self._udp, self._tcp = _sockets()
        self.port: int = self._udp.getsockname()[1]
        self._threads = [threading.Thread(target=serve) for serve in (self._serve_udp, self._serve_tcp)]

    @property
    def servers(self) -> tuple[tuple[str, int], ...]:
        """As the settings hold it."""
        return (("127.0.0.1", self.port),)

    def __enter__(self) -> NameServer:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._udp.sendto(b"", self._udp.getsockname())
        with contextlib.suppress(OSError):
            self._tcp.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._udp.close()
        self._tcp.close()

    def _serve_udp(self) -> None:
        while True:
            packet, client = self._udp.recvfrom(4096)
            if not packet:
                return
            if (answer := self._answer(packet)) is not None:
                wire = answer.to_wire()
                if len(wire) > BIGGEST_DATAGRAM:
                    answer.flags |= dns.flags.TC
                    answer.answer.clear()
                    wire = answer.to_wire()
                self._udp.sendto(wire, client)

    def _serve_tcp(self) -> None:
        while True:
            try:
                connection, _ = self._tcp.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as stream:
                (length,) = struct.unpack("!H", stream.read(2))
                if (answer := self._answer(stream.read(length))) is not None:
                    wire = answer.to_wire()
                    connection.sendall(struct.pack("!H", len(wire)) + wire)

    def _answer(self, packet: bytes) -> dns.message.Message | None:
        query = dns.message.from_wire(packet)
        (question,) = query.question
        name, kind = question.name.to_text(omit_final_dot=True).lower(), dns.rdatatype.to_text(question.rdtype)
        self.asked.append(f"{name} {kind}")
        records = self._zone.get(name)
        if records == "silent":
            return None
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        if records == "broken":
            answer.set_rcode(dns.rcode.SERVFAIL)
        elif records is None:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        else:
            self._put(answer, question.name, list(records), kind)
        return answer

    def _put(self, answer: dns.message.Message, name: dns.name.Name, records: list[str], kind: str) -> None:
        for record in records:
            of, _, value = record.partition(" ")
            if of == "CNAME":
                answer.answer.append(dns.rrset.from_text(name, 60, "IN", "CNAME", value))
                there = self._zone.get(value.rstrip(".").lower(), [])
                self._put(answer, dns.name.from_text(value), list(there), kind)
        if values := [record.partition(" ")[2] for record in records if record.partition(" ")[0] == kind]:
            answer.answer.append(dns.rrset.from_text(name, 60, "IN", kind, *values))


def _sockets() -> tuple[socket.socket, socket.socket]:
    """Two on one port; another port is taken where somebody has one half of it."""
    while True:
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        try:
            return udp, socket.create_server(udp.getsockname())
        except OSError:
            udp.close()
