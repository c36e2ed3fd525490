-- Pairs of folders, as a JSON list. A restore onto another machine has replaced the first of each pair in the unit's
-- path and in the workspaces of its sessions. The stored original contains the old folders. Null after the next read.
alter table unit add column folder_maps text;
