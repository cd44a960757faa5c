"""What a request for ingest does: accept it, process it if it is small, and leave the rest to the background."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import replace

from retain.errors import RetainError, Unavailable
from retain.ingest.ingestion import PAUSE_S, Ingestion, IngestReceipt
from retain.ingest.intake import Intake
from retain.ingest.jobs import IngestFailed, IngestJob
from retain.ports import Background


async def ingested(
    intake: Intake, reading: Awaitable[tuple[Ingestion, str]], background: Background
) -> tuple[IngestJob, bool]:
    """Ingest what is being read; return the job, and whether it is a new one. The same request is the same job.

    It is durable when this returns. A small one is processed by then, unless it waits for other changes of the tenant's
    memory; else the job is `running` and continues in the background.
    reading: gives the messages to the intake, and returns where they are ingested and the name of their conversation.
    Raises: IngestFailed; as `reading` and `Ingestion.accept`, and then the intake is discarded.
    """
    try:
        ingestion, conversation = await reading
        receipt = await ingestion.accept(conversation, intake, leased=True)
    except RetainError:
        with suppress(Unavailable):  # if so, the daily cron discards it
            await intake.discard()
        raise
    job = receipt.job
    if job.state != "completed" and receipt.small:
        job = await ingestion.process(receipt)
        receipt = replace(receipt, claimed=None)  # the lease was used
    elif job.state != "completed":
        job = replace(job, state="running", error=None)
    if job.state == "failed":
        raise IngestFailed(job)
    if job.state == "running":
        background(_processed(ingestion, receipt))
    return job, receipt.created


def continued(ingestion: Ingestion, job: IngestJob, background: Background) -> None:
    """Continue an interrupted job in the background."""
    background(_processed(ingestion, IngestReceipt(job, created=False, small=False)))


async def _processed(ingestion: Ingestion, receipt: IngestReceipt) -> None:
    await asyncio.sleep(PAUSE_S)  # the response is sent first
    await ingestion.process(receipt, pause_s=PAUSE_S)
