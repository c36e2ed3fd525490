"""One module per command. `backscroll.cli.app` lists all commands and imports a module only when it runs.

Some modules have several commands:

annotate.py   rename, note, tag, untag, tags, star, unstar
changes.py    changes, undo
commits.py    commits, commit
migrate.py    migrate, migrate-workspace
"""
