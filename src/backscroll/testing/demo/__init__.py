"""Sample history of four projects over four months, in the native files of each tool.

The modules in `projects` define the sessions with the methods of `DemoSession`. Its
subclasses write them in the format of each tool. Edits also change the files of the
project, so that the commits contain the work of the sessions.

writer              write the demo into a folder
sample_history      projects and sessions
session             base class of a session
claude_session      a session in Claude Code
cursor_session      a session in the Cursor IDE
cursor_cli_session  a session in the Cursor CLI
project             files and commits of a project
git_objects         ids of git objects, computed without git
git_repository      write repositories with git
image               small PNG images
projects            content of the sessions
"""

from backscroll.testing.demo.writer import ROOTS, Demo, build_history, delete_session, write

__all__ = ["ROOTS", "Demo", "build_history", "delete_session", "write"]
