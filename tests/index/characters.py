"""Characters outside ASCII."""

# The planes 4 to 13 are empty, 15 and 16 are private.
ASSIGNED = (*range(0x80, 0x40000), *range(0xE0000, 0xE0200))
