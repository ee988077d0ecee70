"""``sendonce worker``."""

from __future__ import annotations

import os
import signal

import click

from dashboard.cli import Mistake
from dashboard.cli.options import example


@click.command(epilog=example("sendonce worker", "sendonce worker --only relay,dispatch"))
@click.option("--only", default="", metavar="LOOP,…", help="Run only these loops: relay, dispatch, sweep, …")
@click.option("--metrics-port", type=click.IntRange(1, 65_535), help="Serve figures for Prometheus on this port.")
@click.option("--metrics-host", default="127.0.0.1", show_default=True, help="Address to serve them on.")
def worker(only: str, metrics_port: int | None, metrics_host: str) -> None:
    """Relay, claim, send, reconcile: any number of these may run on one database.

    SIGTERM or Ctrl-C ends it politely: what is in flight is finished and stored, the rest is given back.
    """
    from dashboard import steps
    from dashboard.log import configure
    from dashboard.settings import read_settings
    from dashboard.worker import meters
    from dashboard.worker.process import LOOPS, Worker

    loops = tuple(filter(None, map(str.strip, only.split(",")))) or LOOPS
    unknown = [name for name in loops if name not in LOOPS]
    if unknown:
        raise click.UsageError(f"there is no loop {unknown[0]!r}; the loops are {', '.join(LOOPS)}")
    settings = read_settings(os.environ)
    configure(settings.log)
    try:
        steps.configure(
            logged=settings.log_sends, collector=settings.traces, share=settings.traces_share, part="worker"
        )
    except steps.TracesMissing as error:
        raise Mistake(str(error)) from None
    if metrics_port is not None:
        try:
            meters.serve(metrics_host, metrics_port)
        except OSError as error:
            raise Mistake(f"cannot serve figures on {metrics_host}, port {metrics_port}: {error.strerror}") from None
    process = Worker(settings, only=loops)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.stop())
    process.run()
    steps.close()
