"""The HTTP edge: parse, call, render. It holds no SQL and starts no work of its own."""
