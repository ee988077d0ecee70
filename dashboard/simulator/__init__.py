"""A mail provider that misbehaves from a seed: the demo, the test bed, and the sandbox for users' staging.

It speaks a vendor's HTTP API and SMTP on real sockets, accepts for real, keeps books of what it accepted, and sends
signed webhooks. It is written from the vendors' documents, never from our adapters: an adapter that misreads a
document must be caught here, not agreed with.
"""

from dashboard.simulator.books import Acceptance
from dashboard.simulator.config import Config, Fates, HttpFaults, SmtpFaults, Webhooks, read_config
from dashboard.simulator.dialects import DIALECTS
from dashboard.simulator.presets import PRESETS
from dashboard.simulator.simulator import Simulator

__all__ = [
    "DIALECTS",
    "PRESETS",
    "Acceptance",
    "Config",
    "Fates",
    "HttpFaults",
    "Simulator",
    "SmtpFaults",
    "Webhooks",
    "read_config",
]
