"""Bytes in the archive.

codec.py      messages as compressed chunks, in frames that are read one by one
delta.py      bodies compressed against others that the archive already contains
raw_files.py  original files by segment, compressed against the messages read from them
raw_rows.py   original database rows by version, many values per compressed chunk
strings.py    interned strings
"""
