"""The command: ``sendonce simulator`` and ``python -m dashboard.simulator`` are the same."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from typing import Any

import click

from dashboard.simulator.config import Config, read_config
from dashboard.simulator.dialects import DIALECTS
from dashboard.simulator.presets import PRESETS
from dashboard.simulator.simulator import Simulator

DEFAULTS = Config(http_port=8025, smtp_port=2525)
EXAMPLE = """
Example: sendonce simulator --seed 7 --faults light --webhook-url http://127.0.0.1:8000/webhooks/ACCOUNT

Then send to it as if it were the provider, and look at what it accepted on its first page. Recipients such as
bounce+ada@example.test or timeout+ada@example.test choose their own story.
"""


@click.command(epilog=EXAMPLE)
@click.option("--provider", type=click.Choice(list(DIALECTS)), help="Whose HTTP API is spoken (resend).")
@click.option("--host", help="Address to listen on (127.0.0.1).")
@click.option("--port", type=int, help=f"Port of the HTTP API and of the pages ({DEFAULTS.http_port}); 0 takes any.")
@click.option("--smtp-port", type=int, help=f"Port of the SMTP server ({DEFAULTS.smtp_port}); 0 takes any.")
@click.option("--seed", type=int, help="The same seed misbehaves in the same way (0).")
@click.option("--provider-keys", type=click.Choice(["honoured", "ignored"]), help="Idempotency keys (honoured).")
@click.option("--faults", default="none", show_default=True, help="none, light, heavy, or a JSON file of settings.")
@click.option("--webhook-url", help="Where events are sent; without it none are.")
@click.option("--webhook-secret", help="Signs events; safer in the file of --faults.")
@click.option("--time-scale", type=float, help="Factor on the waits between retries of a webhook (1).")
@click.option("--api-key", help="The one credential that is taken; any otherwise.")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder that keeps the books.")
@click.option("--json", "as_json", is_flag=True, help="Say where it listens as one JSON line.")
def simulator(
    *,
    provider: str | None,
    host: str | None,
    port: int | None,
    smtp_port: int | None,
    seed: int | None,
    provider_keys: str | None,
    faults: str,
    webhook_url: str | None,
    webhook_secret: str | None,
    time_scale: float | None,
    api_key: str | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Run a mail provider that misbehaves: a vendor's HTTP API and SMTP, with books of what it accepted."""
    given = {
        "dialect": provider,
        "host": host,
        "http_port": port,
        "smtp_port": smtp_port,
        "seed": seed,
        "honour_keys": None if provider_keys is None else provider_keys == "honoured",
        "webhooks": _given({"url": webhook_url, "secret": webhook_secret, "time_scale": time_scale}),
        "api_key": api_key,
        "data": data,
    }
    try:
        config = _with_faults(faults).changed(_given(given))
        running = Simulator(config)
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from None
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        running.start()
    except OSError as error:
        raise click.ClickException(f"{_addresses(config)}: {error.strerror}") from None
    try:
        _say_where(running, as_json=as_json)
        stop.wait()
    finally:
        running.stop()


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Those that were given: the others stay as the file or the default says."""
    return {name: value for name, value in options.items() if value is not None}


def _addresses(config: Config) -> str:
    return f"cannot listen on {config.host}, ports {config.http_port} and {config.smtp_port}"


def _with_faults(faults: str) -> Config:
    """The settings of a preset or of a file, over the defaults of the command."""
    if faults in PRESETS:
        return DEFAULTS.changed(PRESETS[faults])
    try:
        text = Path(faults).read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"--faults takes {', '.join(PRESETS)} or a file; {faults}: {error.strerror}") from None
    return read_config(text, DEFAULTS)


def _say_where(running: Simulator, *, as_json: bool) -> None:
    where = {"http_url": running.http_url, "smtp_host": running.smtp_host, "smtp_port": running.smtp_port}
    if as_json:
        click.echo(json.dumps(where))
    else:
        click.echo(f"HTTP API and mailbox: {running.http_url}   SMTP: {running.smtp_host}:{running.smtp_port}")
