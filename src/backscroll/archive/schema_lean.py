"""The fourth migration: rows that take less room, and files that lean on others they repeat."""

__all__ = ["LEAN"]

# `number_of` and `tokens_of` are functions that the connection offers while it migrates.
LEAN = """
create table word (
    number integer primary key,
    text text not null unique
);
insert into word (number, text) values (1, 'user'), (2, 'assistant'), (3, 'thinking'), (4, 'tool'),
    (5, 'error'), (6, 'system'), (7, 'completed'), (8, 'pending'), (9, 'failed'), (10, 'cancelled'),
    (11, 'accepted'), (12, 'rejected'), (13, 'modified'), (14, 'queued');
insert or ignore into word (text)
    select role from message union select kind from message where kind is not null
    union select tool from message where tool is not null
    union select model from message where model is not null
    union select agent_id from message where agent_id is not null
    union select forked_from from message where forked_from is not null
    union select copied_from from message where copied_from is not null
    union select model from response where model is not null;

-- role, kind, tool, status, decision, model, agent_id, forked_from and copied_from are words;
-- call is a number made of the call's id
create table lean_message (
    account integer not null references account(number) on delete cascade,
    position integer not null,
    record integer not null,
    at integer,
    role integer not null,
    kind integer,
    tool integer,
    call integer,
    status integer,
    decision integer,
    model integer,
    agent_id integer,
    is_active integer not null,
    forked_from integer,
    copied_from integer,
    primary key (account, position)
) without rowid;
insert into lean_message select account, position, record, at,
    (select number from word where text = role), (select number from word where text = kind),
    (select number from word where text = tool), number_of(call),
    (select number from word where text = status), (select number from word where text = decision),
    (select number from word where text = model), (select number from word where text = agent_id), is_active,
    (select number from word where text = forked_from), (select number from word where text = copied_from)
    from message;
drop table message;
alter table lean_message rename to message;
create index message_record on message(record);
create index message_call on message(call, account) where call is not null;

-- id is a number made of the response's id; model and speed are words
create table lean_response (
    account integer not null references account(number) on delete cascade,
    id integer not null,
    record integer not null,
    at integer,
    is_agent integer not null,
    model integer,
    is_copy integer,
    input integer,
    output integer,
    cache_creation integer,
    cache_read integer,
    cache_creation_1h integer,
    is_at_least integer not null,
    speed integer,
    cost real,
    primary key (account, id)
) without rowid;
insert or ignore into word (text) select distinct tokens_of(usage, 'speed') from response
    where tokens_of(usage, 'speed') is not null;
insert into lean_response select account, number_of(id), record, at, is_agent,
    (select number from word where text = model), null, tokens_of(usage, 'input_tokens'),
    tokens_of(usage, 'output_tokens'), tokens_of(usage, 'cache_creation_input_tokens'),
    tokens_of(usage, 'cache_read_input_tokens'), tokens_of(usage, 'cache_creation_1h_input_tokens'),
    coalesce(tokens_of(usage, 'is_at_least'), 0),
    (select number from word where text = tokens_of(usage, 'speed')), tokens_of(usage, 'cost_usd')
    from response;
drop table response;
alter table lean_response rename to response;
create index response_id on response(id);

alter table link add column call integer;
update link set call = number_of(tool_call_id);

-- how many of its messages have been compared with those of other accounts
alter table account add column compared integer not null default 0;
update account set is_settled = 0;

-- what a body cannot be read without: the account, or the unit, that it repeats
alter table chunk add column base integer references account(number);
create index chunk_base on chunk(base) where base is not null;
alter table raw add column base integer references unit(number);
create index raw_base on raw(base) where base is not null;
"""
