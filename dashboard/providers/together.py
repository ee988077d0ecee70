"""Which messages may share a call, and what became of each of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from dashboard.providers.base import Outgoing


def parted(
    members: Sequence[Outgoing],
    *,
    size: int,
    alike: Callable[[Outgoing], Hashable] = lambda outgoing: (),
    weight: Callable[[Outgoing], int] = lambda outgoing: 0,
    room: int = 0,
) -> list[list[Outgoing]]:
    """Part messages into calls of at most ``size``, as ``SendsBatches.batches`` asks for it.

    ``alike``: what all messages of one call have in common; None for one that goes alone. ``weight``: what a message
    takes of the ``room`` that one call has.
    """
    calls: list[_Call] = []
    open_calls: dict[Hashable, list[_Call]] = {}
    for member in members:
        common = alike(member) if member.attempt == 1 else None
        fitting = open_calls.setdefault(common, []) if common is not None else []
        address, weighs = member.address.casefold(), weight(member)
        call = next((call for call in fitting if call.takes(address, weighs, size=size, room=room)), None)
        if call is None:
            call = _Call()
            calls.append(call)
            fitting.append(call)
        call.add(member, address, weighs)
    return [call.members for call in calls]


class _Call:
    """A call that is being filled."""

    def __init__(self) -> None:
        self.members: list[Outgoing] = []
        self._addresses: set[str] = set()
        self._weight = 0

    def takes(self, address: str, weight: int, *, size: int, room: int) -> bool:
        full = len(self.members) >= size or self._weight + weight > room
        return not full and address not in self._addresses

    def add(self, member: Outgoing, address: str, weight: int) -> None:
        self.members.append(member)
        self._addresses.add(address)
        self._weight += weight
