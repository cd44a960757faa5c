"""The index specification, and what must agree with it."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from retain.limits.vector_filter import PROVISIONED
from tests.vectorize.workerd import CONFIG, ROOT, variables
from vectorize.specification import IndexSpecification, MetadataIndex, SpecificationError, read_specification

SPECIFIED = read_specification()


def test_every_metadata_index_has_a_reason() -> None:
    assert all(len(one.why) > 20 for one in SPECIFIED.metadata_indexes)


def test_the_library_filters_by_exactly_the_indexed_properties() -> None:
    assert {one.property: one.type for one in SPECIFIED.metadata_indexes} == PROVISIONED


def test_the_standin_is_configured_as_specified() -> None:
    assert variables()["METADATA_INDEXES"] == PROVISIONED
    assert variables()["DIMENSIONS"] == str(SPECIFIED.local_dimensions)
    assert variables()["INDEX_NAME"] == SPECIFIED.name
    assert SPECIFIED.metric == "cosine"  # the only one the stand-in knows


def test_the_configured_standin_shows_writes_immediately_and_cannot_be_steered() -> None:
    assert variables()["VISIBILITY_DELAY_MS"] == "0"
    assert variables()["ALLOW_CONTROL"] == "0"


def test_production_binds_the_specified_index() -> None:
    production = tomllib.loads((ROOT / "wrangler.toml").read_text("utf-8"))
    assert production["vectorize"] == [{"binding": "VECTORIZE", "index_name": SPECIFIED.name}]
    assert production["vars"]["EMBEDDING_DIMENSIONS"] == str(SPECIFIED.dimensions)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"name": ""}, "the name must have 1 to 64 bytes"),
        ({"name": "é" * 33}, "the name must have 1 to 64 bytes"),
        ({"metric": "manhattan"}, "the metric must be one of"),
        ({"dimensions": 0}, "dimensions must be 1 to 1536"),
        ({"dimensions": 1537}, "dimensions must be 1 to 1536"),
        ({"local_dimensions": 1537}, "dimensions must be 1 to 1536"),
        ({"metadata_indexes": tuple(MetadataIndex(f"p{n}", "string", "") for n in range(11))}, "at most 10"),
        ({"metadata_indexes": (MetadataIndex("a", "string", ""), MetadataIndex("a", "number", ""))}, "at most one"),
        ({"metadata_indexes": (MetadataIndex("a", "text", ""),)}, "the type of a must be one of"),
    ],
)
def test_a_specification_that_breaks_a_rule_is_refused(changes: dict[str, object], rule: str) -> None:
    fields = {name: getattr(SPECIFIED, name) for name in IndexSpecification.__slots__}
    with pytest.raises(SpecificationError, match=rule):
        IndexSpecification(**{**fields, **changes})


@pytest.mark.workerd
def test_wrangler_accepts_the_standin(tmp_path: Path) -> None:
    node, out = ROOT / "node_modules" / ".bin", tmp_path / "out"
    environment = {
        **os.environ,
        "PATH": f"{node}{os.pathsep}{os.environ['PATH']}",
        "CI": "1",
        "WRANGLER_SEND_METRICS": "false",
    }
    command: list[str | Path] = [node / "wrangler", "deploy", "--dry-run", "--config", CONFIG, "--outdir", out]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "env.INDEX (StandInIndex)" in done.stdout
    assert "WARNING" not in done.stdout + done.stderr
