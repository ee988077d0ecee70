"""``sendonce user`` and ``sendonce token``: who may log in, with which role, and which programs may use the API."""

from __future__ import annotations

import sys
from uuid import UUID

import click

from dashboard.cli import Mistake
from dashboard.cli.ledger import answering, ledger
from dashboard.cli.options import example, workspace_option
from dashboard.ledger import access, audit
from dashboard.ledger.tables import Role

password_option = click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input instead of asking for it."
)


@click.group(epilog=example("sendonce user add ada --name 'Ada Byron' --role operator", "sendonce user list"))
def user() -> None:
    """People who may log in to the dashboard."""


@user.command("add", epilog=example("sendonce user add ada --name 'Ada Byron' --role operator"))
@click.argument("login")
@click.option("--name", default="", help="The name that colleagues see; the login where it is not given.")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    default=Role.SUPPORT.value,
    show_default=True,
    help="support investigates; operator also decides held sends; admin also reads the audit log.",
)
@click.option("--reveal/--no-reveal", default=None, help="May see whole addresses, each time on record. Default: yes.")
@click.option(
    "--messages/--no-messages",
    default=None,
    help="May read what recipients got, each time on record. Operators and admins always may; support: no.",
)
@workspace_option
@password_option
def add_user(
    login: str,
    name: str,
    role: str,
    reveal: bool | None,
    messages: bool | None,
    workspace: str,
    password_stdin: bool,
) -> None:
    """Add a person, or give one that exists a role and rights in (another) workspace."""
    with ledger() as connection:
        workspace_id = access.find_workspace(connection, workspace)
        person = access.find_person(connection, login)
        if person is None:
            password = _password(password_stdin)
            user_id = access.add_person(connection, login=login, name=name, password=password)
            audit.record(connection, audit.Action.ADD_USER, workspace_id=workspace_id, subject=login)
        else:
            user_id = person.id
        access.put_role(
            connection, user_id=user_id, workspace_id=workspace_id, role=Role(role), reveal=reveal, messages=messages
        )
        told = {"role": role, "reveal": reveal, "messages": messages}
        detail = {right: given for right, given in told.items() if given is not None}
        audit.record(connection, audit.Action.SET_ROLE, workspace_id=workspace_id, subject=login, detail=detail)
    click.echo(f"{login} is {role} in {workspace}.")


@user.command("list", epilog=example("sendonce user list"))
def list_users() -> None:
    """Everybody, with their roles."""
    with ledger() as connection:
        people = access.list_people(connection)
    for person in people:
        roles = ", ".join(f"{one.role} in {one.workspace}{_rights(one)}" for one in person.memberships) or "no role"
        click.echo(f"{person.login}\t{person.name}\t{'disabled' if person.disabled_at else roles}")


@user.command("disable", epilog=example("sendonce user disable ada"))
@click.argument("login")
def disable_user(login: str) -> None:
    """Shut a person out, at once. What they did stays on record."""
    with ledger() as connection:
        access.disable_person(connection, login=login)
        audit.record(connection, audit.Action.DISABLE_USER, workspace_id=None, subject=login)
    click.echo(f"{login} cannot log in any more.")


@user.command("password", epilog=example("sendonce user password ada"))
@click.argument("login")
@password_option
def change_password(login: str, password_stdin: bool) -> None:
    """Set a new password; whoever is logged in with the old one is logged out."""
    with ledger() as connection:
        access.set_password(connection, login=login, password=_password(password_stdin))
        audit.record(connection, audit.Action.SET_PASSWORD, workspace_id=None, subject=login)
    click.echo(f"{login} has a new password.")


@click.group(epilog=example("sendonce token add shop-backend", "sendonce token list"))
def token() -> None:
    """Tokens by which programs use the API of a workspace."""


@token.command("add", epilog=example("sendonce token add shop-backend"))
@click.argument("name")
@click.option("--user", "login", metavar="LOGIN", help="For whom it decides: it may do what that person may.")
@workspace_option
def add_token(name: str, login: str | None, workspace: str) -> None:
    """Make a token. It is printed once, and nobody can show it again.

    Without --user it asks for sends and looks at them; with it, it also does what operators do, in that person's name.
    """
    with ledger() as connection:
        workspace_id = access.find_workspace(connection, workspace)
        user_id = answering(connection, login) if login else None
        token_id, secret = access.add_token(connection, workspace_id=workspace_id, name=name, user_id=user_id)
        audit.record(
            connection, audit.Action.ADD_TOKEN, workspace_id=workspace_id, subject=token_id,
            detail={"name": name} | ({"for": login} if login else {}),
        )  # fmt: skip
    click.echo(secret)


@token.command("list", epilog=example("sendonce token list"))
@workspace_option
def list_tokens(workspace: str) -> None:
    """The tokens of a workspace, newest first."""
    with ledger() as connection:
        tokens = access.list_tokens(connection, access.find_workspace(connection, workspace))
    for one in tokens:
        state = f"revoked {one.revoked_at:%Y-%m-%d}" if one.revoked_at else f"since {one.created_at:%Y-%m-%d}"
        click.echo(f"{one.id}\t{one.name}\t{state}")


@token.command("revoke", epilog=example("sendonce token revoke 0b6e2f1c-7c1e-4a51-9d0b-3f5f0f6a2b11"))
@click.argument("token_id", type=click.UUID)
@workspace_option
def revoke_token(token_id: UUID, workspace: str) -> None:
    """Revoke a token, at once."""
    with ledger() as connection:
        workspace_id = access.find_workspace(connection, workspace)
        if not access.revoke_token(connection, workspace_id=workspace_id, token_id=token_id):
            raise Mistake(f"{workspace} has no token {token_id} that is still good; see: sendonce token list")
        audit.record(connection, audit.Action.REVOKE_TOKEN, workspace_id=workspace_id, subject=token_id)
    click.echo("Revoked.")


def _rights(membership: access.Membership) -> str:
    """What differs from what the role has anyway."""
    with_messages = membership.messages and not access.includes(membership.role, Role.OPERATOR)
    return " reading messages" * with_messages + " without revealing addresses" * (not membership.reveal)


def _password(from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    answer: str = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    return answer
