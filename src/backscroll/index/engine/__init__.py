"""The index files and everything that writes them.

store         `Index`: open, rebuild, write, search
read_only     open an index that cannot be written
schema        fields, tokenizers, index version
documents     value types: a message and its session
encode        a message as a JSON document for Tantivy
session_text  documents of whole sessions
writer        `Writer`: add, delete, commit
throttle      limit on text that waits in the queue of the writer
purge         removal of deleted messages from the index files
background    `BackgroundTask`: a function call in a thread
"""
