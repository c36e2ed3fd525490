"""Substring and regular-expression search.

pattern         `Pattern`: match a text
regex           RE2, which takes linear time on any text
regex_literals  literals that every match contains
candidates      literals as queries on the term dictionary
"""
