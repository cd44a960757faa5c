"""The index specification: `index.toml`, checked."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

SPECIFICATION = Path(__file__).parent / "index.toml"

METRICS = ("cosine", "euclidean", "dot-product")
TYPES = ("string", "number", "boolean")
MAX_DIMENSIONS = 1536
MAX_METADATA_INDEXES = 10
MAX_NAME_BYTES = 64


class SpecificationError(ValueError):
    """The specification breaks a rule of Vectorize."""


@dataclass(frozen=True, slots=True)
class MetadataIndex:
    """One property to filter by. type: string, number or boolean."""

    property: str
    type: str
    why: str


@dataclass(frozen=True, slots=True)
class IndexSpecification:
    """An index to provision. local_dimensions: of its stand-in for local development."""

    name: str
    metric: str
    dimensions: int
    local_dimensions: int
    metadata_indexes: tuple[MetadataIndex, ...]

    def __post_init__(self) -> None:
        properties = [one.property for one in self.metadata_indexes]
        _require(0 < len(self.name.encode()) <= MAX_NAME_BYTES, f"the name must have 1 to {MAX_NAME_BYTES} bytes")
        _require(self.metric in METRICS, f"the metric must be one of {', '.join(METRICS)}")
        for dimensions in (self.dimensions, self.local_dimensions):
            _require(1 <= dimensions <= MAX_DIMENSIONS, f"dimensions must be 1 to {MAX_DIMENSIONS}")
        _require(
            len(properties) <= MAX_METADATA_INDEXES, f"at most {MAX_METADATA_INDEXES} metadata indexes are allowed"
        )
        _require(len(set(properties)) == len(properties), "a property has at most one metadata index")
        for one in self.metadata_indexes:
            _require(one.type in TYPES, f"the type of {one.property} must be one of {', '.join(TYPES)}")


def read_specification(path: Path = SPECIFICATION) -> IndexSpecification:
    """Read the specification.

    Raises: SpecificationError when it breaks a rule of Vectorize.
    Source: https://developers.cloudflare.com/vectorize/platform/limits/
    """
    data = tomllib.loads(path.read_text("utf-8"))
    return IndexSpecification(
        name=data["name"],
        metric=data["metric"],
        dimensions=data["dimensions"],
        local_dimensions=data["local"]["dimensions"],
        metadata_indexes=tuple(MetadataIndex(**one) for one in data["metadata_indexes"]),
    )


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise SpecificationError(rule)
