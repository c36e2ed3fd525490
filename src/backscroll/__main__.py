"""``python -m backscroll`` runs the command."""

from backscroll.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
