"""Commands that back up, restore and move histories."""
