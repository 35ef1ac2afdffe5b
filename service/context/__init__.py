"""Context: what an agent is told unasked, at a session's start, with a prompt, before it opens a file."""
