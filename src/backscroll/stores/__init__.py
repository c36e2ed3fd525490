"""One home opened: its archive and index, the tools' roots and the settings.

stores           `Stores`, which every use case takes
lookup           find a session by ref, and a workspace by name
arguments        checks of arguments
index_access     query and update the index
indexer          write to the index what the archive has queued
index_documents  documents of messages, also those that reader processes have encoded
change_log       the record of changes of the tools' stores
"""
