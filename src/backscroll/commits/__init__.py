"""Sessions behind commits and lines of code.

commits       `Commits`: pages of commits with their sessions, the turns that led to a commit, its files
lines         hashes and text of lines that stay the same when code is reformatted
shell         shell commands: written text, changed files, calls of `git commit`
scan          edits, added lines and commits of all sessions, kept up to date in the archive
commit_graph  the commits of a repository: what they add, ancestors, branches, time windows
paths         compare paths of edits with paths in a repository
checkouts     which folders of sessions are checkouts of the repository
content       lines of commits, attributed to the sessions that wrote them
link          find the sessions of commits: collect commit calls, files and tracked code, weigh all evidence
context       sessions that were open at the time of a commit
blame         commit, session and prompt of each line of a file
survival      lines of sessions that were committed and still exist
"""
