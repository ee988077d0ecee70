"""What is raised where somebody asked for what cannot be done."""

from __future__ import annotations


class Refused(ValueError):
    """What was asked for cannot be done; the message says why and what to do instead."""
