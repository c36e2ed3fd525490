"""The tables of what people add to sessions themselves.

They name a session by platform and id and not by a row, so that they outlive every
rebuild, and what was noted stays when a session is read again or its tool deletes it.
"""

__all__ = ["NOTES"]

NOTES = """
create table tag (
    platform text not null,
    id text not null,
    name text not null,
    at timestamp not null,
    primary key (id, platform, name)
) without rowid;
create index tag_name on tag(name);

create table star (
    platform text not null,
    id text not null,
    at timestamp not null,
    primary key (id, platform)
) without rowid;

create table note (
    platform text not null,
    id text not null,
    number integer not null,
    text text not null,
    written_at timestamp not null,
    edited_at timestamp,
    primary key (id, platform, number)
) without rowid;

create table renaming (
    platform text not null,
    id text not null,
    title text not null,
    at timestamp not null,
    primary key (id, platform)
) without rowid;
"""
