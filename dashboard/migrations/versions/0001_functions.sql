-- SHA-1 (FIPS 180-4), which PostgreSQL has only in an extension that not every server offers. It names, it guards
-- nothing: RFC 9562 prescribes it for version 5 UUIDs.
create function sendonce.sha1(message bytea) returns bytea
language plpgsql immutable strict parallel safe as $$
declare
  padded bytea := message || '\x80'::bytea
    || decode(repeat('00', ((119 - length(message) % 64) % 64)), 'hex') || int8send(length(message)::bigint * 8);
  h0 bigint := 1732584193; h1 bigint := 4023233417; h2 bigint := 2562383102; h3 bigint := 271733878; h4 bigint := 3285377520;
  a bigint; b bigint; c bigint; d bigint; e bigint; t bigint; x bigint;
  w bigint[];
begin
  for block in 0 .. length(padded) / 64 - 1 loop
    w := array_fill(0::bigint, array[80]);
    for i in 1 .. 16 loop
      t := block * 64 + i * 4 - 4;
      w[i] := (get_byte(padded, t::int)::bigint << 24) | (get_byte(padded, t::int + 1) << 16)
        | (get_byte(padded, t::int + 2) << 8) | get_byte(padded, t::int + 3);
    end loop;
    for i in 17 .. 80 loop
      x := w[i - 3] # w[i - 8] # w[i - 14] # w[i - 16];
      w[i] := ((x << 1) & 4294967295) | (x >> 31);
    end loop;
    a := h0; b := h1; c := h2; d := h3; e := h4;
    for i in 1 .. 80 loop
      t := (((a << 5) & 4294967295) | (a >> 27)) + e + w[i] + case
        when i <= 20 then ((b & c) | (~b & d & 4294967295)) + 1518500249
        when i <= 40 then (b # c # d) + 1859775393
        when i <= 60 then ((b & c) | (b & d) | (c & d)) + 2400959708
        else (b # c # d) + 3395469782 end;
      e := d; d := c; c := ((b << 30) & 4294967295) | (b >> 2); b := a; a := t & 4294967295;
    end loop;
    h0 := (h0 + a) & 4294967295; h1 := (h1 + b) & 4294967295; h2 := (h2 + c) & 4294967295;
    h3 := (h3 + d) & 4294967295; h4 := (h4 + e) & 4294967295;
  end loop;
  return substring(int8send(h0) from 5) || substring(int8send(h1) from 5) || substring(int8send(h2) from 5)
    || substring(int8send(h3) from 5) || substring(int8send(h4) from 5);
end $$;

-- The id of the logical email: RFC 9562 version 5 over the workspace's id, the mailstream and the key.
create function sendonce.send_id(workspace uuid, mailstream text, key text) returns uuid
language plpgsql immutable strict parallel safe as $$
declare
  hash bytea := substring(sendonce.sha1(uuid_send(workspace) || convert_to(mailstream || chr(10) || key, 'UTF8')) for 16);
begin
  hash := set_byte(hash, 6, (get_byte(hash, 6) & 15) | 80);
  hash := set_byte(hash, 8, (get_byte(hash, 8) & 63) | 128);
  return encode(hash, 'hex')::uuid;
end $$;

-- Ask for a send inside the caller's own transaction. Returns the send id; asking again is recorded as a duplicate.
-- No NOTIFY here: its lock spans the caller's commit. Workers poll the outbox.
create function sendonce.enqueue(request jsonb) returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  workspace uuid;
  stream text := request ->> 'mailstream';
  key text := request ->> 'key';
  id uuid;
begin
  if key is null or key collate "C" !~ '^[!-~]([ -~]*[!-~])?$' or length(key) > 255 then
    raise exception 'sendonce: key must be 1 to 255 characters of printable ASCII without spaces at its ends'
      using errcode = 'invalid_parameter_value';
  end if;
  if key ~ '[^\s@:]+@[^\s@:]+\.[^\s@:]+' then
    raise exception 'sendonce: the key contains an email address; use the recipient''s id instead'
      using errcode = 'invalid_parameter_value';
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
