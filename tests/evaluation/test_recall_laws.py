"""On data of people that it was not written for, recall is not below full text alone, nor below rank fusion."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.recall import METHODS, ROOT, broken, means, measure
from tests.support.instances import shipped_embedder

DATA = ROOT / "evals" / "retrieval"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["realmem", "lifebench"])
async def test_no_category_is_below_full_text_alone_nor_rank_fusion(name: str) -> None:
    results = await measure(DATA / f"{name}.jsonl.gz", shipped_embedder())
    assert broken(results) == []
    best = max(means(results, method, "all")[1] for method in METHODS if method != "retain")
    assert means(results, "retain", "all")[1] > best


def test_a_category_below_another_method_breaks_the_law() -> None:
    worse, better = [(0.1, 0.1, 0.1, 0.1)] * 30, [(0.2, 0.2, 0.2, 0.2)] * 30
    results = {
        (method, category): worse if method == "retain" and category == "b" else better
        for method in METHODS
        for category in ("all", "a", "b")
    }
    assert broken(results) == ["b: retain 10.0, full text 20.0", "b: retain 10.0, rank fusion 20.0"]
    few = {key: scores[:29] for key, scores in results.items()}
    assert broken(few) == []


def test_the_data_is_small_and_its_licence_is_named() -> None:
    files = sorted(DATA.glob("*.gz"))
    assert sum(path.stat().st_size for path in files) < 1_000_000
    readme = Path(DATA / "README.md").read_text("utf-8")
    assert [path.name for path in files if f"| `{path.name}` |" not in readme] == []
