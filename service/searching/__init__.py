"""Keyword search in steps: what is asked, how its text is understood, which rows match, how they are ranked."""
