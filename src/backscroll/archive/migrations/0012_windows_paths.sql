-- Windows paths that differ only in case are one workspace: the next sync derives their sessions again.
update fragment set is_derived = 0 where (platform, coalesce(parent_external_id, external_id)) in
    (select platform, external_id from conversations
     where workspace_path glob '[A-Za-z]:*' or workspace_path glob '/[A-Za-z]:*' or workspace_path like '\\%');
