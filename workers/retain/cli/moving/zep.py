"""Facts of Zep and Graphiti: the edges of a graph, each of which is a fact with the time in which it holds.

Source: https://help.getzep.com/sdk-reference/graph/edge/get-edge
"""

from __future__ import annotations

from collections.abc import Iterator

from retain.cli.moving.entries import Entry, invalid, moment_in, present, read_entries, text_in
from retain.cli.moving.memory import ForeignMemory
from retain.memory.records.object_keys import key_of

_KEPT = ("attributes", "name", "episodes", "episode_uuids", "source_node_uuid", "target_node_uuid")


def memories(text: str) -> Iterator[ForeignMemory]:
    """Yield the facts of a file. A fact whose nodes have no names is text alone.

    Its object is part of the predicate, so that facts of several objects hold side by side, as they do in the graph.
    Raises: InvalidInput (code `invalid_export`), naming the entry.
    """
    for number, edge in read_entries(text, ("edges", "facts", "results")):
        content, source_id = text_in(edge, "fact"), text_in(edge, "uuid") or text_in(edge, "uuid_")
        if content is None or source_id is None:
            raise invalid(number, "an edge of Zep has a uuid and a fact")
        try:
            ends = moment_in(edge, "invalid_at")
            yield ForeignMemory(
                number,
                source_id,
                content,
                present(edge, _KEPT),
                fact=_fact(edge),
                recorded_at_ms=moment_in(edge, "created_at"),
                valid_from_ms=moment_in(edge, "valid_at"),
                valid_to_ms=moment_in(edge, "expired_at") if ends is None else ends,
            )
        except ValueError as error:
            raise invalid(number, str(error)) from error


def _fact(edge: Entry) -> tuple[str, str, str] | None:
    subject, name, target = (text_in(edge, one) for one in ("source_node_name", "name", "target_node_name"))
    if subject is None or name is None or target is None:
        return None
    return subject, f"{key_of(name)}:{key_of(target)}", target
