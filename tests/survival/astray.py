"""``sendonce`` in a process whose wall clock is SENDONCE_ASTRAY seconds wrong, for tests: ``python astray.py worker``.

What the product asks for the time of day is shifted before any of it is imported: ``time.time`` and ``datetime.now``.
"""

from __future__ import annotations

import datetime
import os
import time
from typing import Any

ASTRAY = float(os.environ["SENDONCE_ASTRAY"])
_time, _Datetime = time.time, datetime.datetime


class _Kind(type):
    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, _Datetime)


class _Astray(_Datetime, metaclass=_Kind):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return _Datetime.now(tz) + datetime.timedelta(seconds=ASTRAY)


time.time = lambda: _time() + ASTRAY
datetime.datetime = _Astray  # type: ignore[misc]

if __name__ == "__main__":
    from dashboard.cli import main

    main()
