"""Shell commands of an assistant.

words            split a command into simple commands and words
commit_commands  commands that create commits, and the hashes that git prints
writes           written text and changed files
"""
