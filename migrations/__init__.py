"""Numbered SQL, applied once each and in order, and the runner that checks the real tables against it."""
