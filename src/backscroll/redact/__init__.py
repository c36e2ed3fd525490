"""Secret detection and redaction.

rules     what a secret is: formats of keys and tokens, contexts of passwords, and what only looks like one
redactor  find the secrets in texts, and replace them in sessions and messages by placeholders
"""
