"""Cursor's own databases, written for tests: every generation, every kind of session, every damage.

home = cursor.Home(tmp_path)
home.composer([cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")])
home.write()
"""
