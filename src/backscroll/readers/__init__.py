"""Readers of file formats, independent of any tool.

jsonl         JSON lines, including damaged ones
lenient_json  JSON that a strict parser rejects; text and images in any document
json_outline  keys and types of documents without values, for bug reports
protobuf      the protobuf wire format without a schema
timestamps    timestamps in all formats that the tools use
sqlite        SQLite databases that another program may be writing
files         permissions, names, hashes and changes of files
file_lock     inter-process locks on files
temp_folder   private temporary folders
read_faults   problems with files and folders that cannot be read
processes     running processes and the files that they have open
"""
