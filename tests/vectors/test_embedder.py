"""Text to vector."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from service.vectors.embedder import DIMENSION, Embedder

TEXTS = (
    "The parser drops the last token",
    "Last token is lost by the parser",
    "We bought apples and pears",
    "",
    "日本語",
)


def cosine(one: bytes, other: bytes) -> float:
    return float(np.frombuffer(one, "<f4") @ np.frombuffer(other, "<f4"))


def test_every_vector_has_length_one_whatever_the_text(embedder: Embedder) -> None:
    for vector in embedder.embed([*TEXTS, "word " * 5000, "\0\r\n", "[MASK] [CLS]", "🎉" * 300]):
        numbers = np.frombuffer(vector, "<f4")
        assert numbers.shape == (DIMENSION,)
        assert np.linalg.norm(numbers) == pytest.approx(1, abs=1e-5)


def test_texts_that_mean_the_same_are_near(embedder: Embedder) -> None:
    parser, same, apples, *_ = embedder.embed(TEXTS)
    assert cosine(parser, same) > 0.7
    assert cosine(parser, apples) < 0.2


def test_a_text_has_the_same_vector_alone_and_among_others(embedder: Embedder) -> None:
    together = embedder.embed([*TEXTS, *(f"{text} and {text}" for text in TEXTS)])
    for text, vector in zip(TEXTS, together, strict=False):
        assert cosine(embedder.embed([text])[0], vector) > 0.9999


def test_batches_on_threads_come_back_in_order(embedder: Embedder) -> None:
    texts = [f"{'long ' * (i % 7)}number {i}" for i in range(50)]
    with ThreadPoolExecutor(2) as threads:
        beside = embedder.embed(texts, threads)
    for one, other in zip(beside, embedder.embed(texts), strict=True):
        assert cosine(one, other) > 0.9999


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, world!", [101, 7592, 1010, 2088, 999, 102]),
        ("Café naïve", [101, 7668, 15743, 102]),
        ("getUserById snake_case", [101, 2131, 20330, 3762, 3593, 7488, 1035, 2553, 102]),
        ("", [101, 102]),
    ],
)
def test_words_are_cut_as_the_model_learned_them(embedder: Embedder, text: str, tokens: list[int]) -> None:
    """The numbers are those of the model's own tokenizer."""
    assert embedder._tokenizer.encode(text).ids == tokens
