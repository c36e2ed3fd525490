-- The last record of a session's file, if it has no message of its own: Claude Code before 2.0 names a session by its
-- last line, which can be the result of a call.
create table last_record (
    fragment_id integer primary key references fragment(id) on delete cascade,
    record_hash integer not null
);
create index last_record_hash on last_record(record_hash);
