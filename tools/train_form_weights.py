"""Learn the weights of `quadloom.crawling.topical.forms.classifier` from annotated pages.

    python tools/train_form_weights.py [--report]

Data: the pages in the wheel of the PyPI package formasaurus (MIT; `pip install --no-deps formasaurus==0.10.0`). Hosts
are split into two halves by a hash of their registered domain; only the first half is read here. The regularisation is
chosen by five folds over its sites, the threshold by the pooled predictions of those folds.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
from pathlib import Path

import msgspec
import numpy as np
from scipy.optimize import minimize

from quadloom.crawling.topical.forms.classifier import FormWeights, is_harmless
from quadloom.crawling.topical.forms.features import NAMES, features
from quadloom.crawling.topical.forms.html_forms import read_forms
from quadloom.model.url import host_of, site_of

TARGET = Path(__file__).parents[1] / "src/quadloom/crawling/topical/data/form_weights.json"


def folder() -> Path:
    """The package's data, found without importing it (its import wants a dozen packages and the network)."""
    spec = importlib.util.find_spec("formasaurus")
    if spec is None or spec.origin is None:
        raise SystemExit("formasaurus is not installed: pip install --no-deps formasaurus==0.10.0")
    return Path(spec.origin).parent / "data"


def half_of(url: str) -> str:
    """`dev` or `test`, the same for all pages of a registered domain."""
    digest = hashlib.sha256(site_of(host_of(url)).encode()).digest()
    return "dev" if digest[0] % 2 == 0 else "test"


def load() -> list[tuple[str, list[str], list[list[float]], list[bool]]]:
    """(site, labels, features, harmless) of every dev page whose forms could be aligned with its annotation."""
    pages = []
    index = json.loads((folder() / "index.json").read_text(encoding="utf-8"))
    for name, entry in sorted(index.items()):
        if half_of(entry["url"]) != "dev":
            continue
        forms = read_forms((folder() / name).read_bytes(), entry["url"])
        if len(forms) == len(entry["forms"]):
            site = site_of(host_of(entry["url"]))
            pages.append((site, entry["forms"], [features(f) for f in forms], [is_harmless(f) for f in forms]))
    return pages


def train(rows: np.ndarray, labels: np.ndarray, weights: np.ndarray, strength: float) -> np.ndarray:
    """Weighted logistic regression with an L2 penalty; the first column is the bias and is not penalised."""
    penalty = np.full(rows.shape[1], strength)
    penalty[0] = 0.0

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        z = rows @ w
        p = 1 / (1 + np.exp(-np.clip(z, -30, 30)))
        value = -np.sum(weights * (labels * np.log(p + 1e-12) + (1 - labels) * np.log(1 - p + 1e-12)))
        return float(value + (penalty * w * w).sum() / 2), rows.T @ (weights * (p - labels)) + penalty * w

    return np.asarray(minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B").x)


def page_counts(pages: list, scores: list[list[float]], threshold: float) -> tuple[int, int, int]:
    """(true positives, false positives, misses) when one form per page is chosen; unjudged forms count neither way."""
    hits = wrong = missed = 0
    for (_, labels, _, _), row in zip(pages, scores, strict=True):
        best = max(range(len(row)), key=lambda i: (row[i], -i), default=None)
        found = labels[best] if best is not None and row[best] >= threshold else ""
        hits += found == "s"
        wrong += found not in ("", "s", "X", "-")
        missed += found != "s" and "s" in labels
    return hits, wrong, missed


def predict(w: np.ndarray, page: tuple) -> list[float]:
    return [
        float(1 / (1 + np.exp(-np.clip(np.dot(w, row), -30, 30)))) if harmless else 0.0
        for row, harmless in zip(page[2], page[3], strict=True)
    ]


def fit(pages: list, strength: float) -> np.ndarray:
    sizes: dict[str, int] = {}
    for site, *_ in pages:
        sizes[site] = sizes.get(site, 0) + 1
    rows, labels, weights = [], [], []
    for site, marks, vectors, _ in pages:
        for mark, vector in zip(marks, vectors, strict=True):
            if mark not in ("X", "-"):
                rows.append(vector)
                labels.append(mark == "s")
                weights.append(1 / sizes[site] ** 0.5)  # many pages of one site say nearly the same
    return train(np.array(rows, float), np.array(labels, float), np.array(weights), strength)


def folds(pages: list, strength: float) -> list[list[float]]:
    """Predictions for every page by weights that never saw its site."""
    number = {site: int(hashlib.sha256(b"fold" + site.encode()).hexdigest(), 16) % 5 for site, *_ in pages}
    scores: list[list[float]] = [[] for _ in pages]
    for fold in range(5):
        w = fit([page for page in pages if number[page[0]] != fold], strength)
        for place, page in enumerate(pages):
            if number[page[0]] == fold:
                scores[place] = predict(w, page)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", action="store_true", help="print the folds' figures, write nothing")
    arguments = parser.parse_args()
    pages = load()
    best = None
    for strength in (0.1, 0.2, 0.4, 0.8, 1.6):
        scores = folds(pages, strength)
        for threshold in (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75):
            hits, wrong, missed = page_counts(pages, scores, threshold)
            precision, recall = hits / max(1, hits + wrong), hits / max(1, hits + missed)
            # Twice the care for precision: a wrong form is submitted, a missed one is only a site asked in another way.
            value = (1 + 0.25) * precision * recall / max(1e-9, 0.25 * precision + recall)
            if best is None or value > best[0]:
                best = (value, strength, threshold, precision, recall)
    assert best is not None
    print(f"dev folds: L2 {best[1]}, threshold {best[2]}: page precision {best[3]:.3f}, recall {best[4]:.3f}")
    if arguments.report:
        return
    w = fit(pages, best[1])
    record = FormWeights(NAMES, tuple(round(float(value), 4) for value in w), best[2])
    TARGET.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


if __name__ == "__main__":
    main()
