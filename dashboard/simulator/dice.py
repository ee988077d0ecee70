"""Seeded chance. Every roll is a pure function of the seed and of what is rolled for.

No state is kept between rolls: which request arrives first, on which connection, cannot change what happens to any
other, so a run under concurrency is repeated by repeating its seed.
"""

from __future__ import annotations

import math
from hashlib import blake2b


def roll(seed: int, *subject: str | int) -> float:
    """A number in [0, 1) that belongs to this seed and subject for ever."""
    text = "\x1f".join(map(str, (seed, *subject)))
    return (int.from_bytes(blake2b(text.encode(errors="backslashreplace"), digest_size=8).digest()) >> 11) / 2**53


def lasting(mean: float, rolled: float) -> float:
    """An exponentially distributed duration with this mean."""
    return -mean * math.log(1.0 - rolled)
