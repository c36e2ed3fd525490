"""Text analysis, shared by indexing, queries and highlights.

tokenize     identifiers into subwords, CJK runs into bigrams
normalize    lower case without accents, for the index and in place for highlights
inflections  inflected forms of a word
languages    detection, stop words and stems of other languages
cjk_words    weights of character pairs in Chinese, Japanese and Korean queries
"""
