-- Ask for a send inside the caller's own transaction. Returns the send id; asking again is recorded as a duplicate.
-- No NOTIFY here: its lock spans the caller's commit. Workers poll the outbox.
create or replace function sendonce.enqueue(request jsonb) returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  workspace uuid;
  stream text := request ->> 'mailstream';
  key text := request ->> 'key';
  id uuid;
  size int := octet_length(request::text);
begin
  if key is null or key collate "C" !~ '^[!-~]([ -~]*[!-~])?$' or length(key) > 255 then
    raise exception 'sendonce: key must be 1 to 255 characters of printable ASCII without spaces at its ends'
      using errcode = 'invalid_parameter_value';
  end if;
  if key ~ '[^\s@:]+@[^\s@:]+\.[^\s@:]+' then
    raise exception 'sendonce: the key contains an email address; use the recipient''s id instead'
      using errcode = 'invalid_parameter_value';
  end if;
  if size > 10000000 then
    raise exception 'sendonce: the request has % bytes; at most 10000000 are taken', size
      using errcode = 'invalid_parameter_value', hint = 'Put a link into the message instead of what is so large.';
  end if;
  select w.id into workspace from sendonce.workspaces w join sendonce.mailstreams m on m.workspace_id = w.id
    where w.name = coalesce(request ->> 'workspace', 'default') and m.name = stream;
  if workspace is null then
    raise exception 'sendonce: there is no mailstream "%" in workspace "%"', stream, coalesce(request ->> 'workspace', 'default')
      using errcode = 'invalid_parameter_value', hint = 'Create it with: sendonce stream add';
  end if;
  id := sendonce.send_id(workspace, stream, key);
  insert into sendonce.outbox (send_id, workspace_id, request) values (id, workspace, request);
  return id;
end $$;
