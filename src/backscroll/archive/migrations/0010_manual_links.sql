-- Links between sessions and commits that the user made or removed. They survive a rebuild, and a rebase or amend of
-- the commit, which keep its author time and its patch id.
create table manual_link (
    platform text not null,
    external_id text not null,
    sha text not null,  -- of the commit when the link was made
    authored_at integer not null,  -- of the commit, seconds
    patch_id text not null,  -- empty if the commit changes no file
    is_linked integer not null,  -- 0: the session did not lead to the commit
    created_at integer not null,
    primary key (external_id, platform, sha)
) without rowid;
create index manual_link_commit on manual_link(authored_at);
