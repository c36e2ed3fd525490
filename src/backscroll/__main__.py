"""``python -m backscroll`` runs the command."""

from backscroll.cli import main

if __name__ == "__main__":
    main()
