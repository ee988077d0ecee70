-- Mail that came in, and which send it answers.
alter table sendonce.workspaces add column keep_replies boolean not null default false;
alter table sendonce.mailstreams add column reply_domain text collate "C";

create table sendonce.mail_replies (
    id bigint generated always as identity,
    workspace_id uuid not null,
    account_id uuid not null,
    digest bytea not null,
    send_id uuid,
    matched_by text collate "C",
    reason text,
    at timestamptz not null,
    received_at timestamptz not null,
    automatic boolean not null,
    own_address boolean,
    sender text,
    content bytea,
    repeats integer not null default 0,
    constraint mail_replies_pkey primary key (id),
    constraint one_reply_per_mail unique (workspace_id, digest),
    constraint mail_replies_match_has_way check ((send_id is null) = (matched_by is null)),
    constraint mail_replies_set_aside_with_reason check ((send_id is null) = (reason is not null)),
    constraint mail_replies_set_aside_is_bare check (send_id is not null or (sender is null and content is null))
);
create index mail_replies_by_send on sendonce.mail_replies (send_id, at) where send_id is not null;
create index mail_replies_set_aside on sendonce.mail_replies (account_id, received_at) where send_id is null;
