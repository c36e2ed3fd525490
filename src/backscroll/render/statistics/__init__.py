"""Usage statistics as text, Markdown, JSON and CSV.

report       totals as a list, groups as a table with bars
year         one year in review
explanation  every usage record behind a total
json         JSON and CSV
reported     cost that the tools report
charts       bars and sparklines of block characters
"""
