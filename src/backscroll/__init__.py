"""The whole history of your work with AI coding assistants: read, kept and found."""

__version__ = "0.1.0"

__all__ = ["__version__"]
