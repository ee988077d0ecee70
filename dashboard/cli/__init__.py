"""The command ``sendonce``. One file a command group; ``COMMANDS`` is the whole register.

Exit codes: 0; 1 where a check found something wrong; 2 for wrong usage, or where the work could not be done. A user's
mistake is one clear line on standard error, never a traceback.
"""

from __future__ import annotations

import importlib
import os
import sys

import click

from dashboard import __version__

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("dashboard.cli.demo:demo", "See it at work, or prove it (--headless)."),
    "migrate": ("dashboard.cli.migrate:migrate", "Bring the database to the newest schema."),
    "web": ("dashboard.cli.web:web", "Serve the dashboard, the API and the webhooks."),
    "worker": ("dashboard.cli.worker:worker", "Relay, send and reconcile; any number may run."),
    "trace": ("dashboard.cli.trace:trace", "Tell what became of a send."),
    "investigate": ("dashboard.cli.investigate:investigate", "Find out what a complaint comes from."),
    "verify": ("dashboard.cli.verify:verify", "Check the invariants on a live database."),
    "replay": ("dashboard.cli.replay:replay", "Send again what failed, under its own key."),
    "cancel": ("dashboard.cli.cancel:cancel", "Cancel sends that nobody wants any more."),
    "held": ("dashboard.cli.held:held", "What only a person may decide: look, decide, agree."),
    "dead-letters": ("dashboard.cli.dead_letters:dead_letters", "What could not be taken: look, queue again, discard."),
    "alerts": ("dashboard.cli.alerts:alerts", "What is watched, what fired, who is told."),
    "workers": ("dashboard.cli.workers:workers", "Which workers run, and asking one to end."),
    "suspects": ("dashboard.cli.looking:suspects", "What seems to have been asked for twice, under two keys."),
    "audit": ("dashboard.cli.looking:audit", "What people and programs did."),
    "marker": ("dashboard.cli.markers:marker", "Mark deploys and incidents in the charts."),
    "rollups": ("dashboard.cli.rollups:rollups", "Count the figures of the charts again."),
    "retain": ("dashboard.cli.retain:retain", "Strip what its mailstream keeps no longer."),
    "place": ("dashboard.cli.place:place", "Show where the ledger is, and adopt a new place."),
    "workspace": ("dashboard.cli.workspaces:workspace", "Tenants: most installations have one, called default."),
    "account": ("dashboard.cli.accounts:account", "Provider accounts, their secrets and webhook addresses."),
    "provider": ("dashboard.cli.providers:provider", "Try out an account at its provider; sends nothing."),
    "stream": ("dashboard.cli.streams:stream", "Mailstreams: one for each kind of mail."),
    "user": ("dashboard.cli.people:user", "People who may log in."),
    "token": ("dashboard.cli.people:token", "Tokens of the API."),
    "enqueue": ("dashboard.cli.enqueue:enqueue", "Ask for the sends of a file of JSON lines."),
    "simulator": ("dashboard.cli.simulator:simulator", "Run a provider that misbehaves from a seed."),
}
"""Name: where it is, and what ``sendonce --help`` says of it. Loaded only when it is asked for."""


class Mistake(click.ClickException):
    """Something that the user has to put right; the message says how. Ends the command with exit code 2."""

    exit_code = 2


class _LazyGroup(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, told) for name, (_, told) in COMMANDS.items()])


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Each command: sendonce COMMAND --help. Settings come from the environment; see docs/.",
)
@click.version_option(__version__, prog_name="sendonce", message="%(prog)s %(version)s")
def sendonce() -> None:
    """One durable ledger row per intended email, sent by exactly one worker."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code."""
    try:
        code = sendonce.main(arguments, prog_name="sendonce", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.UsageError as error:
        hint = f" (see: {error.ctx.command_path} --help)" if error.ctx else ""
        return _complain(f"{error.format_message()}{hint}", error.exit_code)
    except click.ClickException as error:
        return _complain(error.format_message(), error.exit_code)
    except click.Abort:
        return _complain("stopped", 130)
    except BrokenPipeError:
        # The reader (`head`) has gone. What Python still holds must go nowhere, or its exit complains.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        told = _told(error)
        if not told:
            raise
        return max(_complain(line, 2) for line in told)
    return code if isinstance(code, int) else 0


def _told(error: Exception) -> list[str]:
    """What to say of an error that is no bug of ours; nothing for any other. Imports late, for a fast ``--help``."""
    from psycopg import OperationalError, errors

    from dashboard.embedded.server_account import EmbeddedPostgresError
    from dashboard.settings import SettingsError

    match getattr(error, "orig", None) or error:  # SQLAlchemy wraps the driver's errors
        case SettingsError(problems=problems):
            return problems
        case EmbeddedPostgresError() as unavailable:
            return [str(unavailable)]
        case OperationalError(sqlstate=None) as unreachable:
            return [f"the database cannot be reached: {str(unreachable).partition(chr(10))[0]}"]
        case errors.UndefinedTable() | errors.InvalidSchemaName():
            return ["the database has no ledger of this version; run: sendonce migrate"]
    return []


def _complain(what: str, code: int) -> int:
    click.echo(f"sendonce: {what}", err=True)
    return code
