"""The files of the journal.

folder        where the journal of a repository is
daily_files   entries and notes in the files of the days
atomic_write  read, lock and replace files without losing changes
periods       days, weeks, months, quarters and years
summaries     summaries of a period
"""
