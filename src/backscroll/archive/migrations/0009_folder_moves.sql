-- Pairs of folders, as a JSON list: the moves of a session after its tool has deleted it, the oldest first. They apply
-- after folder_maps, when the session is derived or restored. Null after the next read.
alter table unit add column folder_moves text;
