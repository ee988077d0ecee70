"""The face for other people's code: ``enqueue`` in their transaction, ``send_once`` around their own provider call.

Light to import: neither Flask nor Plotly, and nothing of the database before ``send_once`` or ``connect`` is named.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from dashboard.producer.asking import Trigger, enqueue

if TYPE_CHECKING:
    from dashboard.producer.once import InProgress, Ledger, Mismatch, Outcome, connect, send_once

__all__ = ["InProgress", "Ledger", "Mismatch", "Outcome", "Trigger", "connect", "enqueue", "send_once"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("dashboard.producer.once"), name)
