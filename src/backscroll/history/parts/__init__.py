"""Parts of `History`, each an attribute that is loaded on first use.

annotations      tags, stars, notes, titles
archive_admin    status, verify, forget, rebuild, extract
exports          files, secrets
live             watch and follow
resume           resume, open, hand over
source_files     audit of the tools' files
statistics       tokens, costs, a year in review
transcript       messages and turns of a session
"""
