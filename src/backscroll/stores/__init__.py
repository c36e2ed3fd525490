"""One home opened: its archive and index, the tools' roots and the settings.

stores   `Stores`, which every use case takes; the change log
lookup   find a session by ref, and a workspace by name; checks of arguments
indexer  query the index, and write to it what the archive has queued
"""
