"""Writers that ask the nodes of a cluster in turn, and note what was acknowledged."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import httpx

from tools.cluster.nodes import Node

AGENT = "order_triage"
_PAUSE_S = 0.2
_TIMEOUT_S = 60.0
_MAIL = "From: {customer}@example.com. The vase of order SO-{number} is broken. Refund, please."


@dataclass
class Acknowledged:
    """What one writer got an acknowledgement for. longest_s: how long one request was repeated until a node took it."""

    tenant: str
    memories: list[str] = field(default_factory=list)
    runs: dict[str, str] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0

    @property
    def count(self) -> int:
        """How many requests were acknowledged."""
        return len(self.memories) + len(self.runs)


class Writers:
    """One thread per writer: a memory, a run, a memory. What is refused or not answered is sent again to the next node."""

    def __init__(self, nodes: Sequence[Node], notes: Sequence[Acknowledged], *, name: str) -> None:
        """Prepare a writer per note. name: part of what they write, so that it differs from what others wrote."""
        self._notes = notes
        self._nodes = nodes
        self._name = name
        self._has_ended = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(len(notes))]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._has_ended.set()
        for thread in self._threads:
            thread.join()

    def until(self, acknowledged: int, timeout_s: float) -> None:
        """Return when every writer has so many more acknowledgements. Raises: TimeoutError."""
        wanted = [note.count + acknowledged for note in self._notes]
        deadline = time.monotonic() + timeout_s
        while any(note.count < least for note, least in zip(self._notes, wanted, strict=True)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"acknowledged: {[note.count for note in self._notes]} of {wanted}")
            time.sleep(0.1)

    def _write(self, writer: int) -> None:
        note = self._notes[writer]
        for number in itertools.count():
            if self._has_ended.is_set():
                return
            began = time.monotonic()
            if number % 4 == 3:
                self._run(note, f"{self._name}-{writer}-{number}".replace(" ", "-"))
            else:
                self._store(
                    note,
                    f"Writer {writer} noted {number} of {self._name}: the code is {writer}-{number * 7919 % 10007}.",
                )
            note.longest_s = max(note.longest_s, time.monotonic() - began)

    def _store(self, note: Acknowledged, content: str) -> None:
        body = {"agent_type": "refund_decision", "content": content}
        address = f"/admin/tenants/{note.tenant}/memories"
        if self._repeated(note, lambda client, base: client.post(base + address, json=body)) is not None:
            note.memories.append(content)

    def _run(self, note: Acknowledged, key: str) -> None:
        body = {"input": _MAIL.format(customer=key, number=len(note.runs))}
        address = f"/v1/agents/{note.tenant}/{AGENT}/run"
        headers = {"idempotency-key": key}
        answer = self._repeated(note, lambda client, base: client.post(base + address, json=body, headers=headers))
        if answer is not None:
            note.runs[key] = answer.json()["run_id"]

    def _repeated(
        self, note: Acknowledged, send: Callable[[httpx.Client, str], httpx.Response]
    ) -> httpx.Response | None:
        """Send to one node after the other until one accepts; None if the writers end before that."""
        with httpx.Client(timeout=_TIMEOUT_S) as client:
            for attempt in itertools.count(note.count):
                if self._has_ended.is_set():
                    return None
                try:
                    answer = send(client, self._nodes[attempt % len(self._nodes)].base_url)
                except httpx.HTTPError as error:
                    note.refused[type(error).__name__] += 1
                else:
                    if answer.is_success:
                        return answer
                    note.refused[str(answer.json().get("code"))] += 1
                time.sleep(_PAUSE_S)
        return None
