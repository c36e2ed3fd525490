"""Retrieval corpus: written sessions in generated noise, and questions that one session answers.

sessions/           written sessions, as TOML
development.toml    questions whose individual results may be looked at
held_out.toml       questions of which only the totals are looked at
general_words.txt   English words for the noise, in addition to those of the sessions
corpus              load the sessions and the questions
noise               huge messages, long sessions and other sessions that answer no question
history             write everything as files of the three tools
bm25                baseline: BM25 over the prompts and answers of each session
"""
