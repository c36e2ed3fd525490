-- Events that hooks of the tools have reported. A sync moves them here from the spool; the id of a record ensures
-- that it is stored once. Rows with is_read = 0 are not part of a fragment yet.
create table hook_event (
    id text primary key,
    at integer not null,
    platform text,  -- null if the record could not be parsed
    source text,
    external_id text,  -- of the session
    name text not null,  -- of the event, as given by the tool
    is_read integer not null default 0,
    body blob not null  -- the record as JSON, compressed
) without rowid;
create index hook_event_session on hook_event(platform, external_id, at);
create index hook_event_unread on hook_event(platform, external_id) where not is_read;

-- Commits that the git hook has reported, or that a sync has found in a repository with the hook.
create table hook_commit (
    repository text not null,  -- path of the git folder that all worktrees share
    sha text not null,
    at integer not null,
    folder text not null,  -- the worktree
    event text not null,  -- 'post-commit', 'post-rewrite', or 'found' by a sync
    session_external_id text,  -- the session that made the commit, if its tool says so
    is_done integer not null default 0,  -- linked to sessions and, if configured, in the journal
    primary key (repository, sha)
) without rowid;
create index hook_commit_pending on hook_commit(at) where not is_done;

-- Repositories with the git hook.
create table hook_repository (
    path text primary key,  -- as hook_commit.repository
    fingerprint text not null default ''  -- of the reflog when its commits were last compared
) without rowid;
