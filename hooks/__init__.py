"""What runs inside the client's hook process: standard library only, nothing of ours is imported from here."""
