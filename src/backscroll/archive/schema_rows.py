"""The tables that keep rows of the tools' databases."""

__all__ = ["KEPT_ROWS"]

KEPT_ROWS = """
-- values together in pieces, so that they compress well
create table kept_piece (
    number integer primary key,
    size integer not null,
    body blob not null
);

create table kept_row (
    number integer primary key,
    unit integer not null references unit(number) on delete cascade,
    path text not null,
    table_name text not null,
    key text not null,
    part text not null,
    version integer not null,
    is_text integer not null,
    is_shared integer not null,
    is_gone integer not null default 0,
    blanked text,
    digest blob,
    piece integer,
    offset integer,
    size integer
);
create index kept_row_unit on kept_row(unit);
create index kept_row_piece on kept_row(piece);
create index kept_row_shared on kept_row(digest) where is_shared;

-- the rows of what was read before rows were kept are read with the next sync
update unit set is_retried = 1 where source in ('cursor', 'cursor-cli') and not is_gone;
"""
