"""Parts of `History`, each an attribute that is loaded on first use.

annotations      tags, stars, notes, titles
archive_admin    status, verify, forget, rebuild, extract
background_sync  complete a long sync in another process
exports          files, secrets
live             watch and follow
resume           resume, open, hand over
search           word and pattern search
source_files     audit of the tools' files
statistics       tokens, costs, a year in review
transcript       messages and turns of a session
"""
