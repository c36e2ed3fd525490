"""Content of the demo: modules with the sessions of each project, and the files that they write.

tideline_july, tideline_summer, tideline_autumn   a web service for ferry timetables
saltern_summer, saltern_autumn                    an importer of tide gauge readings
lintel_summer, lintel_autumn                      a checker of Markdown links
website                                           a personal website
*_files                                           complete files that the sessions write
"""
