"""Secret detection and redaction.

rules           regular expressions for keys, tokens, passwords, e-mail addresses and home folders
password_rules  contexts in which a plain word is a password
heuristics      tell a secret from code, placeholders and examples
scanner         find all secrets in a text
redactor        replace secrets in sessions and messages by placeholders
"""
