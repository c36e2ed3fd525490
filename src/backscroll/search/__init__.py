"""Search over index and archive: the index finds messages, the archive provides their text.

search             word search and pattern search
excluded_sessions  sessions that contain an excluded word
facets             counts of matching messages by property
hit_text           the text of a hit
second_match       another message, if the words are spread over a session
title_hits         session titles that match a pattern
byte_prefilter     skip stored messages that cannot match, without decoding them
recall             sessions that are relevant to a task
excerpts           excerpts of a recalled session within a token budget
known_secrets      named secrets to redact
synonyms           synonyms (data in synonyms.txt)
"""
