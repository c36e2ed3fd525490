"""The archive's tables. Each migration is applied once, in order, in one transaction with its record.

docs/reference/schema.md says what every column means.
"""

from backscroll.archive.schema_activity import ACTIVITY
from backscroll.archive.schema_folders import FOLDERS
from backscroll.archive.schema_lean import LEAN
from backscroll.archive.schema_notes import NOTES
from backscroll.archive.schema_rows import KEPT_ROWS
from backscroll.archive.schema_spending import SPENDING
from backscroll.archive.schema_work import WORK

__all__ = ["MIGRATIONS", "WINDOWS"]

# The unified schema: two tables that other programs may query, with the columns they expect first.
WINDOWS = """
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
"""

_UNIFIED = (
    WINDOWS
    + """
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
    number integer not null unique,
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
        (platform = 'claude_code' and session_id is null)
    ),
    unique (external_id, platform)
);
create index idx_conversations_session_cursor on conversations(session_id) where platform = 'cursor';
create index idx_conversations_external on conversations(external_id, platform);
create index idx_conversations_platform_time on conversations(platform, started_at desc);
create index idx_conversations_workspace on conversations(workspace_hash) where workspace_hash is not null;
create index idx_conversations_updated on conversations(updated_at desc, number desc);
"""
)

# What was read, unit by unit. A session is what its accounts say together.
_ACCOUNTS = """
create table unit (
    number integer primary key,
    source text not null,
    platform text not null,
    root text not null,
    path text not null,
    key text not null,
    kind text not null,
    fingerprint text not null,
    size integer not null,
    modified_at timestamp,
    read_at timestamp,
    is_gone integer not null default 0,
    is_retried integer not null default 0,
    mark_offset integer,
    mark_line integer,
    mark_state blob,
    prefix_hash blob,
    tally text not null default '{}',
    unique (path, key)
);

create table account (
    number integer primary key,
    unit integer not null references unit(number) on delete cascade,
    platform text not null,
    source text not null,
    store text not null,
    id text not null,
    parent_id text,
    found_parent text,
    is_agent integer not null,
    is_former integer not null default 0,
    is_settled integer not null default 0,
    opening blob not null,
    closing blob not null,
    messages integer not null default 0,
    preview text
);
create index account_unit on account(unit);
create index account_unsettled on account(number) where not is_settled;
create index account_id on account(id, platform);
create index account_parent on account(coalesce(parent_id, found_parent), platform) where is_agent = 1;

-- which session an account bears on: a subagent's on the one that started it
create view kin as select number, unit, platform, id, is_agent,
    coalesce(iif(is_agent, coalesce(parent_id, found_parent), null), id) as session from account;

create table child (
    account integer not null references account(number) on delete cascade,
    id text not null,
    primary key (account, id)
) without rowid;
create index child_id on child(id);

create table message (
    account integer not null references account(number) on delete cascade,
    position integer not null,
    record integer not null,
    at integer,
    role text not null,
    kind text,
    tool text,
    call text,
    status text,
    decision text,
    model text,
    agent_id text,
    is_active integer not null,
    forked_from text,
    copied_from text,
    primary key (account, position)
) without rowid;
create index message_record on message(record);
create index message_call on message(call, account) where call is not null;

create table chunk (
    account integer not null references account(number) on delete cascade,
    position integer not null,
    body blob not null,
    primary key (account, position)
);

create table amendment (
    account integer not null references account(number) on delete cascade,
    position integer not null,
    body blob not null,
    primary key (account, position)
);

create table response (
    account integer not null references account(number) on delete cascade,
    id text not null,
    record integer not null,
    at integer,
    is_agent integer not null,
    model text,
    usage blob not null,
    primary key (account, id)
) without rowid;
create index response_id on response(id);

create table edit (
    account integer not null references account(number) on delete cascade,
    position integer not null,
    path text not null,
    kind text not null,
    added integer not null,
    removed integer not null
);
create index edit_account on edit(account, position);

create table naming (
    unit integer not null references unit(number) on delete cascade,
    record integer not null,
    title text not null
);
create index naming_record on naming(record);

create table link (
    unit integer not null references unit(number) on delete cascade,
    agent_id text not null,
    tool_call_id text not null,
    evidence text not null,
    strength integer not null
);
create index link_agent on link(agent_id);

create table problem (
    unit integer not null references unit(number) on delete cascade,
    path text not null,
    place text not null,
    reason text not null
);

create table subagent (
    number integer primary key,
    platform text not null,
    agent_id text not null,
    parent_id text not null,
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
    unique (platform, parent_id, agent_id)
);

-- sessions and subagents whose words the index does not have yet, or has otherwise
create table unindexed (number integer primary key);

-- who this archive is, so that an index can tell whether it is its own
create table identity (id text not null);
insert into identity values (lower(hex(randomblob(16))));

create table ledger (
    number integer primary key,
    unit integer not null references unit(number) on delete cascade,
    at timestamp not null,
    event text not null,
    detail text
);
"""

# Originals, to be written back byte for byte.
_RAW = """
create table raw (
    unit integer not null references unit(number) on delete cascade,
    offset integer not null,
    size integer not null,
    sha256 blob not null,
    state integer not null default 0,
    body blob not null,
    primary key (unit, state, offset)
);
"""

# What is not to be kept, without a word of it.
_KEPT_OUT = """
-- sessions that were forgotten, so that they do not come back
create table forgotten (
    platform text not null,
    id text not null,
    primary key (platform, id)
) without rowid;

-- units that told of nothing else, by a digest of path and key, so that they are not read again
create table forgotten_unit (digest blob primary key) without rowid;

-- units in which a workspace was passed over, and a digest of the patterns that said so
create table excluded (
    unit integer primary key references unit(number) on delete cascade,
    patterns blob not null
);
"""

# A list, its length and a session's place in it are told from this alone.
_LISTED = """
create index idx_conversations_listed on conversations(updated_at desc, number desc)
    where visibility in ('listed', 'archived');
"""

# From which position on the index lacks a session, and how often that was noted.
_GROWTH = """
alter table unindexed add column first integer not null default 0;
alter table unindexed add column noted integer not null default 0;

-- which sessions are still going on is asked at every refresh
create index idx_conversations_live on conversations(updated_at) where ended_at is null;
"""

# What a unit told is taken back before it is told anew.
_BY_UNIT = """
create index naming_unit on naming(unit);
create index link_unit on link(unit);
create index problem_unit on problem(unit);
"""

# What is known is compared with what is there at every refresh, without going through all that is kept of it.
_CURRENT = """
create index unit_current on unit(source, root, path, key, fingerprint, is_retried, is_gone);
"""

# What is said twice, in a file's bytes and in the messages read from them, is kept once.
_TOLD = """
alter table raw add column account integer references account(number);
create index raw_account on raw(account) where account is not null;
"""

# They lean on the messages as lines of JSON have them, which a program that does not know of it cannot undo.
# What leans on them otherwise stays as it is.
_LINES = "-- bodies begin with another mark"

# Who waits for the session that it was forked from is found without going through all messages.
_FORKS = """
create index message_fork on message(forked_from) where forked_from is not null and copied_from is null;
"""

# What became of sessions is told at every sync, without going through all the times that a file grew.
_FATES = """
create index ledger_fate on ledger(event, at)
    where event in ('vanished', 'came back', 'rewritten, and what it no longer tells was kept');
"""

# `connection.SCHEMA` says how many there are.
MIGRATIONS: tuple[tuple[str, str], ...] = (
    ("the first archive", _UNIFIED + _ACCOUNTS + _RAW),
    ("what is kept out", _KEPT_OUT),
    ("sessions as they are listed", _LISTED),
    ("leaner rows, and files that lean on others", LEAN),
    ("rows of databases", KEPT_ROWS),
    ("sessions that only grew", _GROWTH),
    ("what units tell, by unit", _BY_UNIT),
    ("what people add to sessions", NOTES),
    ("what was done in each quarter of an hour", ACTIVITY),
    ("what was spent in each quarter of an hour", SPENDING),
    ("what tools and models did in each quarter of an hour", WORK),
    ("units as they are compared", _CURRENT),
    ("files that lean on what was told of them", _TOLD),
    ("folders as they looked", FOLDERS),
    ("files that lean on lines", _LINES),
    ("forks that wait for their origin", _FORKS),
    ("what became of sessions", _FATES),
)
