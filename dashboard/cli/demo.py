"""``sendonce demo``."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path

import click

from dashboard.cli import Mistake
from dashboard.cli.options import example, json_option


@click.command(
    epilog=example("sendonce demo", "sendonce demo --headless --sends 5000 --workers 2 --kill 3 --seed 7 --json")
)
@click.option("--headless", is_flag=True, help="Play one run through, check every promise, print a summary, end.")
@click.option("--sends", default=500, show_default=True, type=click.IntRange(1), help="Headless: emails to ask for.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1, 32), help="Worker processes.")
@click.option(
    "--kill", default=3, show_default=True, type=click.IntRange(0), help="Headless: workers to kill (SIGKILL)."
)
@click.option("--seed", default=1, show_default=True, help="The same seed asks for the same mail and the same faults.")
@click.option(
    "--provider-keys", default="honoured", show_default=True, type=click.Choice(["honoured", "ignored"]),
    help="Whether the provider honours idempotency keys.",
)  # fmt: skip
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False),
    help="Folder to keep everything in (var/demo; headless: a temporary one).",
)  # fmt: skip
@click.option("--port", default=8000, show_default=True, help="Port of the dashboard.")
@json_option
def demo(
    *,
    headless: bool,
    sends: int,
    workers: int,
    kill: int,
    seed: int,
    provider_keys: str,
    data: Path | None,
    port: int,
    as_json: bool,
) -> int:
    """See Sendonce at work: an embedded PostgreSQL, a provider that misbehaves, workers and the dashboard.

    Everything is kept in one folder; a second start goes on where the first one ended. With --headless it is a test
    instead: exit code 1 where any promise was broken.
    """
    if not headless:
        from dashboard.demo.live import show
        from dashboard.demo.stage import StageError

        try:
            show(data or Path("var/demo"), port=port, workers=workers, seed=seed, say=click.echo)
        except StageError as error:
            raise Mistake(str(error)) from None
        return 0
    from dashboard.demo.headless import Run, play
    from dashboard.demo.judge import as_json as in_json

    run = Run(sends=sends, workers=workers, kill=kill, seed=seed, keys_honoured=provider_keys == "honoured")

    def say(what: str) -> None:
        click.echo(what, err=True)

    if data:
        summary = play(run, data, say)
    else:
        with tempfile.TemporaryDirectory(prefix="sendonce-demo-") as folder:
            Path(folder).chmod(0o711)  # for root, whose database server runs as another account
            summary = play(run, Path(folder), say)
    if as_json:
        click.echo(in_json(summary))
    else:
        for name, value in asdict(summary).items():
            click.echo(f"{name.replace('_', ' '):22}{value}")
    return 0 if summary.good else 1
