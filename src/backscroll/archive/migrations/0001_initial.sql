-- Schema of the archive. docs/reference/schema.md explains every table and column.
-- A new migration is a file with the next number.
--
-- The two public tables (cursor_sessions, conversations) store times as ISO 8601 text in UTC.
-- All other tables store times as integer milliseconds since 1970-01-01 UTC.
-- Columns ending in _string_id refer to string.id. Columns ending in _hash are 64-bit BLAKE2b
-- hashes as integers, unless a comment names another algorithm.

-- Public tables ---------------------------------------------------------------------------------

create table cursor_sessions (
    id text primary key,
    external_session_id text not null unique,
    workspace_hash text not null,
    workspace_name text,
    workspace_path text,
    started_at timestamp not null,
    ended_at timestamp,
    metadata text default '{}'
);
create index idx_cursor_sessions_workspace on cursor_sessions(workspace_hash);
create index idx_cursor_sessions_time on cursor_sessions(started_at desc);
create index idx_cursor_sessions_external on cursor_sessions(external_session_id);

create table conversations (
    id text primary key,
    session_id text,
    external_id text not null,
    platform text not null,
    workspace_hash text,
    workspace_name text,
    started_at timestamp not null,
    ended_at timestamp,
    context text default '{}',
    metadata text default '{}',
    tool_sequence text default '[]',
    acceptance_decisions text default '[]',
    interaction_count integer default 0,
    acceptance_rate real,
    total_tokens integer default 0,
    total_changes integer default 0,
    number integer not null unique,  -- internal id of the session; smaller than every subagent.id
    source text not null,
    title text,
    workspace_path text,
    updated_at timestamp,
    message_count integer not null default 0,
    first_message_preview text,
    git_branch text,
    models text not null default '[]',
    version text,
    agent_ids text not null default '[]',
    completeness text not null default 'complete',
    visibility text not null default 'listed',
    is_gone integer not null default 0,
    foreign key (session_id) references cursor_sessions(id),
    check (
        (platform = 'cursor' and session_id is not null) or
        (platform <> 'cursor' and session_id is null)
    ),
    unique (external_id, platform)
);
create index idx_conversations_session_cursor on conversations(session_id) where platform = 'cursor';
create index idx_conversations_external on conversations(external_id, platform);
create index idx_conversations_platform_time on conversations(platform, started_at desc);
create index idx_conversations_workspace on conversations(workspace_hash) where workspace_hash is not null;
create index idx_conversations_updated on conversations(updated_at desc, number desc);
create index idx_conversations_listed on conversations(updated_at desc, number desc)
    where visibility in ('listed', 'archived');
create index idx_conversations_live on conversations(updated_at) where ended_at is null;

-- Units and fragments: what was read, and where ---------------------------------------------------

create table unit (
    id integer primary key,
    source text not null,
    platform text not null,
    root text not null,
    path text not null,
    key text not null,
    kind text not null,
    fingerprint text not null,
    size integer not null,
    modified_at integer,
    read_at integer,
    is_gone integer not null default 0,
    needs_retry integer not null default 0,
    checkpoint_offset integer,
    checkpoint_line integer,
    checkpoint_state blob,
    prefix_hash blob,
    record_counts text not null default '{}',
    -- folder that contains the path, with a separator at its end
    folder text generated always as (
        rtrim(path, replace(path, iif(substr(path, 1, 1) = '/' or instr(path, '\') = 0, '/', '\'), ''))
    ) virtual,
    unique (path, key)
);
create index unit_current on unit(source, root, path, key, fingerprint, needs_retry, is_gone);

create table fragment (
    id integer primary key,
    unit_id integer not null references unit(id) on delete cascade,
    platform text not null,
    source text not null,
    store text not null,
    external_id text not null,  -- id of the session or subagent
    parent_external_id text,  -- session that started the subagent, as stored by the tool
    inferred_parent_external_id text,  -- the same, inferred from other units
    is_subagent integer not null,
    status text not null default 'current' check (status in ('current', 'pending', 'superseded')),
    is_derived integer not null default 0,
    opening blob not null,
    closing blob not null,
    message_count integer not null default 0,
    compared_count integer not null default 0,  -- messages already compared with other fragments
    preview text
);
create index fragment_unit on fragment(unit_id);
create index fragment_underived on fragment(id) where not is_derived;
create index fragment_external_id on fragment(external_id, platform);
create index fragment_parent on fragment(coalesce(parent_external_id, inferred_parent_external_id), platform)
    where is_subagent = 1;

-- The session that a fragment belongs to: a subagent's fragment belongs to the session that started it.
create view fragment_session as
select id as fragment_id, unit_id, platform, external_id, is_subagent,
    coalesce(
        iif(is_subagent, coalesce(parent_external_id, inferred_parent_external_id), null),
        external_id
    ) as session_external_id
from fragment;

create table subagent_link (
    fragment_id integer not null references fragment(id) on delete cascade,
    external_id text not null,  -- a subagent that has a unit of its own
    primary key (fragment_id, external_id)
) without rowid;
create index subagent_link_external_id on subagent_link(external_id);

create table subagent_evidence (
    unit_id integer not null references unit(id) on delete cascade,
    agent_id text not null,
    tool_call_id text not null,
    call_hash integer,
    evidence text not null,
    strength integer not null  -- the smaller, the stronger
);
create index subagent_evidence_agent on subagent_evidence(agent_id);
create index subagent_evidence_unit on subagent_evidence(unit_id);

create table title_hint (
    unit_id integer not null references unit(id) on delete cascade,
    record_hash integer not null,
    title text not null
);
create index title_hint_record on title_hint(record_hash);
create index title_hint_unit on title_hint(unit_id);

create table problem (
    unit_id integer not null references unit(id) on delete cascade,
    code text not null,
    path text not null,
    place text not null,
    reason text not null
);
create index problem_unit on problem(unit_id);

create table source_event (
    id integer primary key,
    unit_id integer not null references unit(id) on delete cascade,
    at integer not null,
    code text not null
        check (code in ('created', 'grew', 'rewritten', 'overwritten', 'vanished', 'returned', 'reparsed')),
    detail text
);
-- Most events are 'grew'. This index skips them.
create index source_event_session on source_event(code, at) where code in ('vanished', 'returned', 'overwritten');

-- Messages ----------------------------------------------------------------------------------------

create table string (
    id integer primary key,
    text text not null unique
);
-- Code uses these ids as constants (storage/strings.py).
insert into string (id, text) values (1, 'user'), (2, 'assistant'), (3, 'thinking'), (4, 'tool'),
    (5, 'error'), (6, 'system'), (7, 'completed'), (8, 'pending'), (9, 'failed'), (10, 'cancelled'),
    (11, 'accepted'), (12, 'rejected'), (13, 'modified'), (14, 'queued');

create table message (
    fragment_id integer not null references fragment(id) on delete cascade,
    position integer not null,
    record_hash integer not null,
    at integer,
    role_string_id integer not null,
    kind_string_id integer,
    tool_string_id integer,
    call_hash integer,
    status_string_id integer,
    decision_string_id integer,
    model_string_id integer,
    agent_string_id integer,
    is_active integer not null,
    forked_from_string_id integer,
    copied_from_string_id integer,
    primary key (fragment_id, position)
) without rowid;
create index message_record on message(record_hash);
create index message_call on message(call_hash, fragment_id) where call_hash is not null;
create index message_fork on message(forked_from_string_id)
    where forked_from_string_id is not null and copied_from_string_id is null;

create table message_chunk (
    fragment_id integer not null references fragment(id) on delete cascade,
    position integer not null,  -- of the first message in the chunk
    body blob not null,
    delta_base_fragment_id integer references fragment(id),
    primary key (fragment_id, position)
);
create index message_chunk_delta_base on message_chunk(delta_base_fragment_id)
    where delta_base_fragment_id is not null;

-- Messages that changed after their chunk was written, for example by a late tool result.
create table message_update (
    fragment_id integer not null references fragment(id) on delete cascade,
    position integer not null,
    body blob not null,
    primary key (fragment_id, position)
);

create table response (
    fragment_id integer not null references fragment(id) on delete cascade,
    response_hash integer not null,
    record_hash integer not null,
    at integer,
    is_subagent integer not null,
    model_string_id integer,
    is_copy integer,
    input_tokens integer,
    output_tokens integer,
    cache_creation_tokens integer,
    cache_read_tokens integer,
    cache_creation_1h_tokens integer,
    is_lower_bound integer not null,
    speed_string_id integer,
    cost_usd real,
    primary key (fragment_id, response_hash)
) without rowid;
create index response_hash on response(response_hash);

create table edit (
    fragment_id integer not null references fragment(id) on delete cascade,
    position integer not null,
    path text not null,
    kind text not null,
    lines_added integer not null,
    lines_removed integer not null
);
create index edit_message on edit(fragment_id, position);

-- The same rows with strings spelled out, for queries by hand.
create view messages as
select m.fragment_id, f.platform, f.external_id as session_external_id, m.position,
    strftime('%Y-%m-%dT%H:%M:%fZ', m.at / 1000.0, 'unixepoch') as at,
    role.text as role, kind.text as kind, tool.text as tool, status.text as status,
    decision.text as decision, model.text as model, agent.text as agent_id,
    m.is_active, copied.text as copied_from
from message m
join fragment f on f.id = m.fragment_id
left join string role on role.id = m.role_string_id
left join string kind on kind.id = m.kind_string_id
left join string tool on tool.id = m.tool_string_id
left join string status on status.id = m.status_string_id
left join string decision on decision.id = m.decision_string_id
left join string model on model.id = m.model_string_id
left join string agent on agent.id = m.agent_string_id
left join string copied on copied.id = m.copied_from_string_id
where f.status = 'current';

create view tool_calls as
select fragment_id, platform, session_external_id, position, at, tool, status, decision, model, agent_id, is_active
from messages where role = 'tool';

-- Subagents as they are listed. The columns mean the same as in conversations.
create table subagent (
    id integer primary key,  -- hash of platform, parent and agent id; larger than every conversations.number
    platform text not null,
    agent_id text not null,
    parent_external_id text not null,
    source text not null,
    tool_call_id text,
    evidence text,
    parent_agent_id text,
    prompt text,
    model text,
    kind text,
    description text,
    total_duration_ms integer,
    total_tokens integer,
    total_tool_use_count integer,
    started_at timestamp,
    updated_at timestamp,
    title text,
    message_count integer not null default 0,
    completeness text not null default 'complete',
    visibility text not null default 'listed',
    is_gone integer not null default 0,
    unique (platform, parent_external_id, agent_id)
);

-- Rollups by 15 minutes: bucket = at / 900000, -1 without a time ----------------------------------

create table activity_rollup (
    fragment_id integer not null references fragment(id) on delete cascade,
    bucket integer not null,
    message_count integer not null default 0,
    subagent_message_count integer not null default 0,
    prompt_count integer not null default 0,
    call_count integer not null default 0,
    failure_count integer not null default 0,
    active_ms integer not null default 0,
    lines_added integer not null default 0,
    lines_removed integer not null default 0,
    decided_count integer not null default 0,
    accepted_count integer not null default 0,
    primary key (fragment_id, bucket)
) without rowid;

create table tool_rollup (
    fragment_id integer not null references fragment(id) on delete cascade,
    bucket integer not null,
    tool_string_id integer not null,  -- 0: none
    model_string_id integer not null,  -- 0: unknown
    message_count integer not null default 0,
    call_count integer not null default 0,
    failure_count integer not null default 0,
    lines_added integer not null default 0,
    lines_removed integer not null default 0,
    decided_count integer not null default 0,
    accepted_count integer not null default 0,
    primary key (fragment_id, bucket, tool_string_id, model_string_id)
) without rowid;

create table token_rollup (
    fragment_id integer not null references fragment(id) on delete cascade,
    bucket integer not null,
    model_string_id integer not null,  -- 0: unknown
    speed_string_id integer not null,  -- 0: standard
    prompt_size_class integer not null,  -- number of price steps below the prompt's size
    response_count integer not null,
    input_tokens integer not null,
    output_tokens integer not null,
    cache_write_tokens integer not null,
    cache_write_1h_tokens integer not null,
    cache_read_tokens integer not null,
    cost_usd real,
    is_lower_bound integer not null,
    primary key (fragment_id, bucket, model_string_id, speed_string_id, prompt_size_class)
) without rowid;

-- Originals: files by segment, database rows by blob ------------------------------------------------

create table raw_segment (
    unit_id integer not null references unit(id) on delete cascade,
    version integer not null default 0,  -- grows when the file is rewritten
    offset integer not null,
    size integer not null,
    sha256 blob not null,
    body blob not null,
    delta_base_unit_id integer references unit(id),  -- another file that this one repeats
    delta_base_fragment_id integer references fragment(id),  -- the messages read from this file
    primary key (unit_id, version, offset)
);
create index raw_segment_base_unit on raw_segment(delta_base_unit_id) where delta_base_unit_id is not null;
create index raw_segment_base_fragment on raw_segment(delta_base_fragment_id)
    where delta_base_fragment_id is not null;

-- Values of rows, compressed together.
create table blob_chunk (
    id integer primary key,
    size integer not null,
    body blob not null
);

create table raw_row (
    id integer primary key,
    unit_id integer not null references unit(id) on delete cascade,
    path text not null,
    table_name text not null,
    key text not null,
    part text not null,
    version integer not null,
    is_text integer not null,
    is_shared integer not null,
    is_gone integer not null default 0,
    removed_fields text,  -- JSON list of fields that contained credentials
    content_hash blob,
    blob_chunk_id integer,
    offset integer,
    size integer
);
create index raw_row_unit on raw_row(unit_id);
create index raw_row_chunk on raw_row(blob_chunk_id);
create index raw_row_shared on raw_row(content_hash) where is_shared;

-- Annotations: keyed by platform and external_id, so that they survive a rebuild -------------------

create table tag (
    platform text not null,
    external_id text not null,
    name text not null,
    created_at integer not null,
    primary key (external_id, platform, name)
) without rowid;
create index tag_name on tag(name);

create table star (
    platform text not null,
    external_id text not null,
    created_at integer not null,
    primary key (external_id, platform)
) without rowid;

create table note (
    platform text not null,
    external_id text not null,
    number integer not null,
    text text not null,
    created_at integer not null,
    edited_at integer,
    primary key (external_id, platform, number)
) without rowid;

create table user_title (
    platform text not null,
    external_id text not null,
    title text not null,
    created_at integer not null,
    primary key (external_id, platform)
) without rowid;

-- What must not be stored ---------------------------------------------------------------------------

create table forgotten_session (
    platform text not null,
    external_id text not null,
    primary key (platform, external_id)
) without rowid;

-- Units that contained nothing but forgotten sessions, by BLAKE2b of path and key.
create table forgotten_unit (path_hash blob primary key) without rowid;

-- Units with an excluded workspace, and the hash of the patterns that excluded it.
create table excluded_unit (
    unit_id integer primary key references unit(id) on delete cascade,
    patterns_hash blob not null
);

-- State ---------------------------------------------------------------------------------------------

-- Sessions and subagents that the index does not contain from a position on.
create table index_queue (
    session_number integer primary key,  -- conversations.number or subagent.id
    first_position integer not null default 0,
    revision integer not null default 0  -- grows with every change
);

-- One row: whether the archive contains everything that the last sync found.
create table sync_state (
    is_complete integer not null,
    completed_at integer  -- of the first sync, or the last one that was too long to wait for
);
insert into sync_state values (0, null);

-- Random id of this archive. The index stores it to detect that it belongs to another archive.
create table archive_identity (id text not null);
insert into archive_identity values (lower(hex(randomblob(16))));

-- Fingerprints of folders whose files are all known. A refresh skips folders that have not changed.
-- Every folder with a unit that is a file has a row; triggers reset it whenever a unit changes.
create table folder_fingerprint (
    source text not null,
    root text not null,
    path text not null,
    fingerprint blob,
    patterns_hash blob,
    primary key (source, root, path)
) without rowid;
create trigger unit_inserted after insert on unit when new.key = '' begin
    insert into folder_fingerprint values (new.source, new.root, new.folder, null, null)
    on conflict do update set fingerprint = null;
end;
create trigger unit_updated after update of fingerprint, is_gone, needs_retry on unit when new.key = '' begin
    insert into folder_fingerprint values (new.source, new.root, new.folder, null, null)
    on conflict do update set fingerprint = null;
end;
create trigger unit_deleted after delete on unit when old.key = '' begin
    delete from folder_fingerprint where source = old.source and root = old.root and path = old.folder;
    insert into folder_fingerprint select source, root, folder, null, null from unit
        where source = old.source and root = old.root and path > old.folder
        and path < old.folder || char(1114111) and key = '' and not is_gone and folder = old.folder limit 1;
end;

-- Applied migrations.
create table migration (
    id integer primary key,
    name text not null,
    at integer not null
);
