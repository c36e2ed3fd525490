-- Links between commits and sessions. All three tables are derived: the command `commits` fills them on first
-- use, from the messages and from git. A sync does not write to them.

-- What a fragment contributes: edited files, hashes of the added lines, calls of `git commit`, times.
create table edit_scan (
    fragment_id integer primary key references fragment(id) on delete cascade,
    message_count integer not null,  -- of the fragment when it was scanned
    read_at integer,  -- of its unit
    version integer not null,  -- of the scanner
    first_at integer,  -- of the first edit or commit; 0 if its time is unknown, null if there is none
    body blob not null,  -- MessagePack
    line_hashes blob not null  -- 64 bits per added line
);

-- What a commit adds. The same commit is stored once for all clones.
create table git_commit (
    sha text primary key,
    version integer not null,
    body blob not null,  -- MessagePack: files
    line_hashes blob not null
) without rowid;

-- Sessions of a commit, with score and evidence. The folder of a session is evidence, so that the result depends on
-- the repository's folder.
create table commit_link (
    repository text not null,
    sha text not null,
    committed_at integer not null,
    body blob not null,  -- MessagePack
    primary key (repository, sha)
) without rowid;
create index commit_link_time on commit_link(committed_at);

-- A changed fragment changes the links of all commits after its first edit. Rebases keep their author time, so
-- that the time of the commit is never too early.
create trigger edit_scan_inserted after insert on edit_scan when new.first_at is not null begin
    delete from commit_link where committed_at >= new.first_at - 120000;
end;
create trigger edit_scan_deleted after delete on edit_scan when old.first_at is not null begin
    delete from commit_link where committed_at >= old.first_at - 120000;
end;
