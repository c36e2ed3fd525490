"""Folders as they looked when all their files were known: those that look the same are passed over."""

__all__ = ["FOLDERS"]


def _folder(path: str) -> str:
    """The folder that a path lies in, with the separator at its end, in SQL."""
    separator = f"iif(substr({path}, 1, 1) = '/' or instr({path}, char(92)) = 0, '/', char(92))"
    return f"rtrim({path}, replace({path}, {separator}, ''))"


_OWED = f"""
    insert into folder values (new.source, new.root, {_folder("new.path")}, null, null)
    on conflict do update set look = null
    ; end"""  # noqa: S608 - names are ours

# Every folder with a unit that is a file has a row. Whatever becomes of a unit, its folder is compared again,
# though it may look as it did before: a file that vanished may be put back.
# Inside a trigger no line ends with a semicolon; there a statement of a migration ends.
FOLDERS = f"""
create table folder (
    source text not null,
    root text not null,
    path text not null,
    look blob,
    patterns blob,
    primary key (source, root, path)
) without rowid;
insert into folder select distinct source, root, {_folder("path")}, null, null from unit
    where key = '' and not is_gone;
create trigger unit_is_new after insert on unit when new.key = '' begin{_OWED};
create trigger unit_is_otherwise after update of fingerprint, is_gone, is_retried on unit when new.key = ''
    begin{_OWED};
create trigger unit_is_erased after delete on unit when old.key = '' begin
    delete from folder where source = old.source and root = old.root and path = {_folder("old.path")}
    ; insert into folder select source, root, {_folder("path")}, null, null from unit
        where source = old.source and root = old.root and path > {_folder("old.path")}
        and path < {_folder("old.path")} || char(1114111) and key = '' and not is_gone
        and {_folder("path")} = {_folder("old.path")} limit 1
    ; end;
"""  # noqa: S608 - as above
