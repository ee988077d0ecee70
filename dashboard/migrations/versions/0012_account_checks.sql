-- What the daily check of each account found, and the rule that watches it.
create table sendonce.account_checks (
    account_id uuid not null,
    taken_at timestamptz,
    asked_at timestamptz,
    checked_at timestamptz,
    findings jsonb not null default '[]',
    standing jsonb not null default '{}',
    broke_at timestamptz,
    constraint account_checks_pkey primary key (account_id),
    constraint account_checks_account_id_fkey foreign key (account_id) references sendonce.accounts (id) on delete cascade
);

insert into sendonce.alert_rules (workspace_id, name, measure, threshold, clears_at, hold_for, span, least, severity)
select w.id, 'account-broken', 'accounts_broken', 0, 0, interval '0', interval '15 min', 0, 'warning'
from sendonce.workspaces w
on conflict do nothing;
