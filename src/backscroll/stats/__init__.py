"""Statistics of sessions: counts from the archive, with prices.

statistics  `Statistics`: reports, explanations, a year in review
totals      sums, and rows by day, week, month, source, workspace, model or tool; costs of sessions
"""
