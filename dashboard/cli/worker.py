"""``sendonce worker``."""

from __future__ import annotations

import os
import signal

import click

from dashboard.cli.options import example


@click.command(epilog=example("sendonce worker", "sendonce worker --only relay,dispatch"))
@click.option(
    "--only", default="", metavar="LOOP,…", help="Run only these loops: relay, dispatch, reconcile, sweep, roll_up."
)
def worker(only: str) -> None:
    """Relay, claim, send, reconcile: any number of these may run on one database.

    SIGTERM or Ctrl-C ends it politely: what is in flight is finished and stored, the rest is given back.
    """
    from dashboard.log import configure
    from dashboard.settings import read_settings
    from dashboard.worker.process import LOOPS, Worker

    loops = tuple(filter(None, map(str.strip, only.split(",")))) or LOOPS
    unknown = [name for name in loops if name not in LOOPS]
    if unknown:
        raise click.UsageError(f"there is no loop {unknown[0]!r}; the loops are {', '.join(LOOPS)}")
    settings = read_settings(os.environ)
    configure(settings.log)
    process = Worker(settings, only=loops)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.stop())
    process.run()
