"""Case notes and tickets, shared views, the look-up of subjects, and who may see addresses and messages."""

from alembic import op

revision = "0008"
down_revision = "0007"

STATEMENTS = (
    "alter table sendonce.workspaces add column ticket_url text",
    "alter table sendonce.roles add column reveal boolean not null default true",
    "alter table sendonce.roles add column messages boolean not null default false",
    "alter table sendonce.messages add column subject_lookup bytea",
    "alter table sendonce.messages add column subject_at timestamptz",
    "alter table sendonce.messages add constraint messages_subject_has_time"
    " check ((subject_lookup is null) = (subject_at is null))",
    "create index messages_by_subject on sendonce.messages (subject_lookup, subject_at)"
    " where subject_lookup is not null",
    # A list of later deliveries is of one verdict, and some verdicts are rare.
    "create index duplicates_by_verdict on sendonce.duplicates (workspace_id, verdict, at)",
    "drop index sendonce.duplicates_by_time",
    # A trigger may have asked any number of times: the newest are found by their time.
    "drop index sendonce.duplicates_by_trigger",
    "create index duplicates_by_trigger on sendonce.duplicates (workspace_id, trigger_id, at)",
    """
    create table sendonce.notes (
      id bigint generated always as identity,
      workspace_id uuid not null,
      send_id uuid not null,
      user_id uuid not null,
      at timestamptz not null default now(),
      ticket text collate "C",
      ticket_lookup text collate "C",
      note bytea,
      constraint notes_pkey primary key (id),
      constraint notes_user_id_fkey foreign key (user_id) references sendonce.users (id),
      constraint notes_says_something check (ticket is not null or note is not null),
      constraint notes_ticket_is_found check ((ticket is null) = (ticket_lookup is null))
    )
    """,
    "create index notes_by_send on sendonce.notes (send_id, at)",
    "create index notes_by_ticket on sendonce.notes (workspace_id, ticket_lookup, at)",
    """
    create table sendonce.views (
      id uuid default gen_random_uuid() not null,
      workspace_id uuid not null,
      list text collate "C" not null,
      name text not null,
      filters jsonb not null,
      user_id uuid not null,
      at timestamptz not null default now(),
      constraint views_pkey primary key (id),
      constraint views_user_id_fkey foreign key (user_id) references sendonce.users (id),
      constraint one_view_per_name unique (workspace_id, list, name),
      constraint views_has_a_name check (length(name) between 1 and 60)
    )
    """,
)

GONE = (
    "drop index sendonce.duplicates_by_trigger",
    "create index duplicates_by_trigger on sendonce.duplicates (workspace_id, trigger_id)",
    "create index duplicates_by_time on sendonce.duplicates (workspace_id, at)",
    "drop index sendonce.duplicates_by_verdict",
    "drop table sendonce.views",
    "drop table sendonce.notes",
    "alter table sendonce.messages drop column subject_lookup, drop column subject_at",
    "alter table sendonce.roles drop column reveal, drop column messages",
    "alter table sendonce.workspaces drop column ticket_url",
)


def upgrade() -> None:
    """Add them. What was recorded before has no subject look-up: its subjects are encrypted, and stay so."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Forget them."""
    for statement in GONE:
        op.execute(statement)
