"""Complaints that people look into, and how a workspace words its replies."""

from alembic import op

revision = "0007"
down_revision = "0006"

STATEMENTS = (
    """
    create table sendonce.investigations (
      id text collate "C" not null constraint investigations_pkey primary key,
      workspace_id uuid not null,
      user_id uuid not null,
      question bytea not null,
      at timestamptz not null default now()
    )
    """,
    "create index investigations_user_id_at on sendonce.investigations (user_id, at)",
    """
    create table sendonce.replies (
      workspace_id uuid not null
        constraint replies_workspace_id_fkey references sendonce.workspaces (id),
      cause text collate "C" not null,
      language text collate "C" not null,
      text text not null,
      user_id uuid not null
        constraint replies_user_id_fkey references sendonce.users (id),
      changed_at timestamptz not null default now(),
      constraint replies_pkey primary key (workspace_id, cause, language),
      constraint replies_text_given check (length(trim(text)) > 0)
    )
    """,
    "create index unmatched_by_recipient on sendonce.unmatched (workspace_id, recipient, occurred_at)",
)


def upgrade() -> None:
    """Add both tables, and find events of no known send by whom they are about."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Questions and wordings are lost."""
    op.execute("drop index sendonce.unmatched_by_recipient")
    op.execute("drop table sendonce.replies")
    op.execute("drop table sendonce.investigations")
