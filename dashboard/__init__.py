"""Sendonce: one durable ledger row per intended email, sent by exactly one worker."""

__version__ = "0.1.0"
