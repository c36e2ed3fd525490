"""Search over index and archive: the index finds messages, the archive provides their text.

search          `Search`: word and pattern search, and all matches in one session
filters         filters and excluded words that only the archive can evaluate
pattern_search  search for a substring or a regular expression
matches         what both return: a hit with its message and the text to show
facets          counts of matching messages by property
recall          sessions that are relevant to a task, with excerpts (synonyms in synonyms.txt)
"""
