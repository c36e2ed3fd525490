"""Search over index and archive: the index finds messages, the archive provides their text.

search          `Search`: word search, counts by property, all matches in one session
pattern_search  search for a substring or a regular expression
matches         what both return: a hit with its message and the text to show
recall          sessions that are relevant to a task, with excerpts (synonyms in synonyms.txt)
"""
