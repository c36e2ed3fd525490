"""Numbers of the home page, prepared for its template.

query    what the figures show, as a URL
data     numbers of a time range, cached
cards    sums with an explanation, and facts of the calendar
bars     values by day, week or month
names    short forms of names
shares   tables by source, workspace, model and tool
"""
