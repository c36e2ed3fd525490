"""One module per command.

sessions/      list, search, show, export and annotate sessions; continue work with them
maintenance/   sync the archive and check it
setup/         connect Backscroll to a shell or an assistant; try it; get help
"""
