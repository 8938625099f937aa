"""An optional relevance model: sentence embeddings instead of hashed words.

The extra `embeddings` installs a library, which downloads a model at first use; nothing else in this package needs
either. It is a logistic regression over the vectors of the topic's examples and counterexamples, as the built-in model
is over words.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from quadloom.crawling.topical.relevance import Example, Topic, logistic
from quadloom.errors import UsageError

Vectors = NDArray[np.float64]
Encoder = Callable[[Sequence[str]], Vectors]
_CHARS = 2000  # models read a few hundred words and cut the rest anyway


class EmbeddingJudge:
    """A `quadloom.crawling.topical.relevance.Judge` over any encoder from texts to vectors of equal length."""

    def __init__(self, topic: Topic, encode: Encoder) -> None:
        if not topic.examples or not topic.counterexamples:
            raise UsageError(
                "relevance by embeddings needs examples of both kinds",
                hint="give --example and --against, a few of each",
            )
        self._encode = encode
        rows = self._vectors([*topic.examples, *topic.counterexamples])
        labels = np.array([1.0] * len(topic.examples) + [0.0] * len(topic.counterexamples))
        shares = np.where(labels > 0, 0.5 / labels.sum(), 0.5 / (1 - labels).sum()) * len(labels)
        self._weights, self._bias = logistic(rows, labels, shares, 0.02)

    def judge(self, document: Example) -> float:
        score = float(self._vectors([document])[0] @ self._weights) + self._bias
        return 1.0 / (1.0 + math.exp(-max(-20.0, min(20.0, score))))

    def _vectors(self, documents: Sequence[Example]) -> Vectors:
        rows = np.asarray(self._encode([f"{d.title}. {d.text}"[:_CHARS] for d in documents]), dtype=float)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return 4.0 * rows / np.where(norms > 0, norms, 1.0)


def load_encoder(name: str) -> Encoder:
    """The encoder of a sentence-transformers model, by name or folder."""
    try:
        library = importlib.import_module("sentence_transformers")
    except ImportError:
        raise UsageError(
            "sentence-transformers is not installed",
            hint="pip install 'quadloom[embeddings]', or leave out --embeddings",
        ) from None
    model = library.SentenceTransformer(name)

    def encode(texts: Sequence[str]) -> Vectors:
        return np.asarray(model.encode(list(texts), show_progress_bar=False), dtype=float)

    return encode
