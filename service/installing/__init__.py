"""Putting Gapless into the settings of clients, and taking it out again: nothing else in those files changes."""
