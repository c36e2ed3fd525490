"""Plan changes of Claude Code's files: restore, move and copy sessions. Nothing here writes.

raw_fields.py      replace single fields in the text of a JSON line
restored_files.py  the transcripts of a session to restore
session_files.py   the files of a session: transcript, side folder, flat subagent files
target_folder.py   the project folder of a workspace
path_map.py        replace the path of a folder in the fields that record where work was done
fork.py            new ids for the lines of a copy
side_stores.py     the prompt log and the session index
session_writer.py  the plans themselves
insert.py          add the prompts and index entries of sessions in a backup
relocation.py      paths and contents of a backup that is restored onto another machine
"""
