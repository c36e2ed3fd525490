-- Copies of sessions that `undo` removed from the tool. They are not listed: the original has all their messages.
create table undone_copy (
    platform text not null,
    external_id text not null,
    primary key (platform, external_id)
) without rowid;
