"""Bytes in the archive.

codec         messages as compressed chunks
seekable      chunks of several frames, so that one message is read without the others
delta         bodies compressed against others that the archive already contains
delta_bases   choose a base for files that repeat another file
delta_raw     compress a file against the messages read from it
decompress    decompress many bodies on two processors
strings       interned strings
blob_store    values of database rows, many per compressed chunk
raw_files     original files by segment
raw_rows      original database rows by version
row_versions  compare two versions of a row
originals     the archive's interface to original files and rows
"""
