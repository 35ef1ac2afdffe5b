"""Compression by rules: the default, with no key and no network."""

from workers.compressors.rules.compressor import RulesCompressor

__all__ = ["RulesCompressor"]
