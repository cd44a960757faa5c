"""Chat through Workers AI's binding inside workerd: what it returns there is JavaScript's."""

from __future__ import annotations

import pytest

from tests.workerd.server import TestWorker

pytestmark = pytest.mark.workerd


def test_a_readable_stream_is_read_in_pieces(worker: TestWorker) -> None:
    answer = worker.probe("workers_ai", text="It| will| be \u22123\u00b0.", error=None, stream=True)
    assert answer == {"content": "It will be \u22123\u00b0.", "pieces": ["It", " will", " be \u22123\u00b0."]}


def test_an_object_is_read_whole(worker: TestWorker) -> None:
    answer = worker.probe("workers_ai", text="It will", error=None, stream=False)
    assert answer == {"content": "It will", "pieces": []}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        ("InferenceUpstreamError: 3040: out of capacity", "Unavailable", "workers_ai_unavailable"),
        ("AiError: 5007: No such model @cf/any", "UpstreamFailed", "model_refused"),
    ],
)
def test_an_error_of_the_platform_is_classed(
    worker: TestWorker, error: str, kind: str, code: str, stream: bool
) -> None:
    shown = worker.probe("workers_ai", text="", error=error, stream=stream)
    assert (shown["class"], shown["code"]) == (kind, code)
