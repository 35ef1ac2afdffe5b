"""Recorded sessions of clients, as the hook events that they must have sent."""
