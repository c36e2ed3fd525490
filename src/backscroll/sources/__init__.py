"""One package per source. Reading is read-only by construction.

registry         the list of all sources: a new source is one line here
protocols        the interface of a source, and optional interfaces for reading
capabilities     what a source can do beyond reading: backup, restore, resume, hooks
claude_code      Claude Code
cursor           Cursor, the editor
cursor_cli       Cursor's command line
cursor_graph     the conversation format that both Cursor sources read
session_files    base of a source with a file per session: listing, and what the archive keeps
session_file_changes  its backups, and how its sessions are restored, moved and copied
json_edits       replace members of JSON texts; all other bytes stay as they are
hook_events      what the hook events of all tools have in common
secret_fields    blank secrets in database values
restore_rows     write archived rows to databases and files
"""

from backscroll.sources.protocols import Source as Source
from backscroll.sources.registry import SOURCES as SOURCES
from backscroll.sources.registry import named as named
from backscroll.sources.registry import names as names
