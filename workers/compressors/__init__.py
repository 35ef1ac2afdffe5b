"""Compressors turn a batch of messages into observations and a summary."""
