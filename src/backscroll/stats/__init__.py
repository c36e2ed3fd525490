"""Statistics of sessions: counts from the archive, with prices.

statistics   `Statistics`: reports, explanations, a year in review
totals       sums, and rows by day, week, month, source, workspace, model or tool
costs        cost of each session; explanation of a cost
year_review  a year in review
calendar     days, weeks and months of a time zone
"""
