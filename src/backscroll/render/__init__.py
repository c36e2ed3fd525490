"""A session as JSON and as text. Values in, strings out."""
