"""Sessions behind commits and lines of code.

lines         hashes and text of lines that stay the same when code is reformatted
shell         shell commands: written text, changed files, calls of `git commit`
scan          edits, added lines and commits of the messages of a fragment
sessions      the scans of all sessions, kept up to date in the archive
commit_graph  the commits of a repository: what they add, ancestors, branches, time windows
paths         compare paths of edits with paths in a repository
checkouts     decide which folders of sessions are checkouts of the repository
evidence      lines, files, time, workspace and commit calls that link a session to a commit
score         weights of the evidence and the threshold of a claim
link          find the sessions of commits
turns         the turns of a session that led to a commit
path_index    how well an edited path matches a file of the repository
attribution   the edit that wrote each line of a file
prompts       the turn and the prompt behind an edit
blame         commit, session and prompt of each line of a file
survival      lines of sessions that were committed and still exist
"""
