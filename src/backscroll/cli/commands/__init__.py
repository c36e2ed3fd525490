"""One module per command or group of related commands.

sessions/      list, search, show, export and annotate sessions; continue work with them
code/          find the sessions behind commits and lines of code
safekeeping/   back up and restore histories; restore, move and copy sessions; undo
maintenance/   sync the archive and check it
setup/         connect Backscroll to a shell or an assistant; try it; get help
"""
