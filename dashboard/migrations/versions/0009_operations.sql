alter table sendonce.workspaces
  add column second_person_above int default 100,
  add constraint workspaces_second_person_number check (second_person_above >= 0);
alter table sendonce.mailstreams add column second_person boolean not null default false;
alter table sendonce.api_tokens
  add column user_id uuid,
  add constraint api_tokens_user_id_fkey foreign key (user_id) references sendonce.users (id);
alter table sendonce.workers add column drain_asked_at timestamptz;
create index attempts_doubted_by_account on sendonce.attempts (account_id, doubted_at) where doubted_at is not null;
alter table sendonce.decisions
  add column approved_by uuid,
  add column proposal_id uuid,
  add constraint decisions_approved_by_fkey foreign key (approved_by) references sendonce.users (id),
  add constraint decisions_approved_by_another check (approved_by <> user_id);

create type sendonce.stage as enum ('preview', 'waiting', 'running', 'done', 'withdrawn', 'declined', 'expired');
create table sendonce.proposals (
  id uuid default gen_random_uuid() not null,
  workspace_id uuid not null,
  user_id uuid not null,
  decision sendonce.decision not null,
  filters jsonb,
  sends int not null,
  left_out int not null,
  mailstreams jsonb not null,
  stage sendonce.stage default 'preview' not null,
  second_person text,
  reason text,
  created_at timestamptz default now() not null,
  proposed_at timestamptz,
  expires_at timestamptz not null,
  answered_by uuid,
  answered_at timestamptz,
  answer text,
  ended_at timestamptz,
  constraint proposals_pkey primary key (id),
  constraint proposals_user_id_fkey foreign key (user_id) references sendonce.users (id),
  constraint proposals_answered_by_fkey foreign key (answered_by) references sendonce.users (id),
  constraint proposals_answered_by_another check (answered_by <> user_id),
  constraint proposals_reason_given check (stage = 'preview' or length(trim(reason)) > 0),
  constraint proposals_end_has_time check ((stage in ('preview', 'waiting', 'running')) = (ended_at is null)),
  constraint proposals_second_person_agreed
    check (second_person is null or stage not in ('running', 'done') or answered_by is not null)
);
create index proposals_by_time on sendonce.proposals (workspace_id, created_at);
create index proposals_under_way on sendonce.proposals (expires_at) where ended_at is null;
create table sendonce.proposal_sends (
  proposal_id uuid not null,
  send_id uuid not null,
  hold_id bigint not null,
  evidence int not null,
  decided_at timestamptz,
  refused text,
  constraint proposal_sends_pkey primary key (proposal_id, send_id),
  constraint proposal_sends_proposal_id_fkey foreign key (proposal_id) references sendonce.proposals (id) on delete cascade
);
create index proposal_sends_left on sendonce.proposal_sends (proposal_id, send_id) where decided_at is null;
create index proposal_sends_refused on sendonce.proposal_sends (proposal_id, send_id) where refused is not null;

update sendonce.work set check_at = now() where state = 'held';
