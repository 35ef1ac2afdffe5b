"""The core of Gapless and its HTTP edge; `design` in README.md draws the layers."""
