"""The version of this code; pyproject.toml reads it from here."""

VERSION = "0.1.0"
