"""What is remembered, carried from one data folder to another: JSON lines out, and in from there and elsewhere."""
