"""Records near a query in meaning, as the vector index knows them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from service.searching.conditions import Within
from service.searching.kinds import Source
from service.vectors.protocol import Nearest, Neighbour, VectorsUnavailable

NEAREST = 200
"""Records that are asked for."""
DEADLINE_S = 0.5
"""Then the words answer alone."""
LEAST_SIMILARITY = 0.2
"""Cosine. Texts that have nothing to do with each other are below it, most of what answers a question is above."""
LEAST_SIMILARITY_OF_A_WORD = 0.36
"""Of a single word that stands in no text: names and made-up words come to 0.35 with texts that have nothing to do with
them, a word for what is remembered in other words to 0.46 and more (28 words, 111 observations of a session's work)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What is near, best first; `missing` says why the index did not answer when it was asked."""

    asked: bool = False
    neighbours: tuple[Neighbour, ...] = ()
    missing: str | None = None

    def of_unwritten(self, text: str) -> tuple[Neighbour, ...]:
        """What is near a query of which no text holds a word."""
        if len(text.split()) > 1:
            return self.neighbours
        return tuple(one for one in self.neighbours if one.similarity >= LEAST_SIMILARITY_OF_A_WORD)


async def nearest(vectors: Nearest | None, text: str, sources: Sequence[Source], within: Within | None) -> Meaning:
    """Never raises, and takes DEADLINE_S at most. Without `vectors` nothing is asked, and nothing is missing."""
    if vectors is None:
        return Meaning()
    doc_types = [source.doc_type for source in sources]
    project = None if within is None else within.project
    try:
        async with asyncio.timeout(DEADLINE_S):
            found = await vectors.nearest(text, doc_types=doc_types, project=project, limit=NEAREST)
    except TimeoutError:
        return Meaning(missing=f"vectors: no answer within {DEADLINE_S:g} s; found by keywords only")
    except VectorsUnavailable as error:
        return Meaning(missing=f"vectors: {error}; found by keywords only")
    return Meaning(asked=True, neighbours=tuple(one for one in found if one.similarity >= LEAST_SIMILARITY))
