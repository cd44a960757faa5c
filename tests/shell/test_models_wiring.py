"""Assembly: each agent, the embedder, the reranker and the judge reach the model that the settings name."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

from retain.errors import Misconfigured
from retain.models.chat import ChatReply, Usage
from retain.models.requests import model_requests_allowed
from tests.shell.platform.streams import ReadableStream
from tests.shell.worker import Worker, root, serving
from tests.support.instances import shipped_embedder, staged_agents
from tests.support.model_server import ModelServer
from tests.support.workers_ai import native_events

AGENT = {"description": "d", "instructions": "i", "memory_config": {"episodes": 0}}
REPLY = ChatReply("From the model.")
NATIVE = {"response": "From the model.", "usage": {"prompt_tokens": 1, "completion_tokens": 1}}


def parts_of(worker: Worker) -> Any:
    return root.assembly_of(worker.env)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.mark.parametrize("stream", [False, True])
async def test_an_agent_that_names_no_model_has_the_deployment_s(server: ModelServer, stream: bool) -> None:
    settings = {
        "CHAT_PROVIDER": "openai",
        "CHAT_MODEL": "gpt-9",
        "CHAT_BASE_URL": server.base_url,
        "CHAT_API_KEY": server.api_key,
    }
    async with serving(agents=staged_agents({"type": "poet", **AGENT}), **settings) as worker:
        await worker.tenant()
        server.say(REPLY)
        answer = await worker.request("POST", "/v1/agents/acme/poet/run", {"input": "hello", "stream": stream})
        assert answer.status == 200
        assert b"From the model." in answer.body or b"From" in answer.body
        [asked] = server.received
        assert (asked.body["model"], asked.body.get("stream", False)) == ("gpt-9", stream)


async def test_an_agent_may_name_another_provider_than_the_deployment(server: ModelServer) -> None:
    agent = {"type": "poet", **AGENT, "model": {"provider": "openai", "name": "gpt-9"}}
    account = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": server.api_key}
    async with serving(agents=staged_agents(agent), **account) as worker:
        await worker.tenant()
        server.say(REPLY)
        assert (await worker.run("acme", "poet", "hello"))["output"] == "From the model."
        assert [asked.body["model"] for asked in server.received] == ["gpt-9"]


@pytest.mark.parametrize("stream", [False, True])
async def test_workers_ai_answers_whole_or_as_a_stream(stream: bool) -> None:
    asked: list[tuple[str, Mapping[str, Any]]] = []

    def answer(model: str, inputs: Mapping[str, Any]) -> object:
        asked.append((model, inputs))
        return ReadableStream(_pieces()) if inputs.get("stream") else NATIVE

    async def _pieces() -> AsyncIterator[bytes]:
        for event in native_events(NATIVE):
            yield event

    agents = staged_agents({"type": "poet", **AGENT})
    with model_requests_allowed():
        async with serving(
            agents=agents, CHAT_PROVIDER="workers-ai", CHAT_MODEL="@cf/chat", ALLOW_MODEL_REQUESTS="true"
        ) as worker:
            await worker.tenant()
            worker.ai._answer = answer
            response = await worker.request("POST", "/v1/agents/acme/poet/run", {"input": "hello", "stream": stream})
            assert response.status == 200
            await worker.settled()
            [row] = await worker.rows("SELECT status, output, model FROM agent_runs")
    assert (row["status"], row["output"]) == ("completed", "From the model.")
    assert [(model, inputs.get("stream", False)) for model, inputs in asked] == [("@cf/chat", stream)]


async def test_a_deployment_without_the_binding_of_workers_ai_says_so() -> None:
    agents = staged_agents({"type": "poet", **AGENT})
    with model_requests_allowed():
        async with serving(
            agents=agents, CHAT_PROVIDER="workers-ai", CHAT_MODEL="@cf/chat", ALLOW_MODEL_REQUESTS="true"
        ) as worker:
            await worker.tenant()
            del worker.env.AI
            result = await worker.run("acme", "poet", "hello")
    assert (result["status"], result["error"]["code"]) == ("failed", "no_ai_binding")


@pytest.mark.parametrize("allowed", ["true", "false"])
async def test_embeddings_come_from_workers_ai_if_the_deployment_allows_it(allowed: str) -> None:
    settings = {"EMBEDDING_PROVIDER": "workers-ai", "EMBEDDING_MODEL": "@cf/embed", "ALLOW_MODEL_REQUESTS": allowed}
    with model_requests_allowed():
        async with serving(**settings) as worker:
            asked: list[str] = []

            def answer(model: str, inputs: Mapping[str, Any]) -> object:
                asked.append(model)
                return {"shape": [len(inputs["text"]), 256], "data": [[1.0] * 256 for _ in inputs["text"]]}

            worker.ai._answer = answer
            if allowed == "false":
                with pytest.raises(Misconfigured) as raised:
                    _ = parts_of(worker).models.embedder
                assert raised.value.code == "model_requests_forbidden"
                return
            embedder = parts_of(worker).models.embedder
            assert (embedder.model, embedder.dimensions) == ("@cf/embed", 256)
            assert len((await embedder.embed(["a text"]))[0]) == 256
            assert asked == ["@cf/embed"]


async def test_embeddings_come_from_an_openai_endpoint(server: ModelServer) -> None:
    settings = {
        "EMBEDDING_PROVIDER": "openai",
        "EMBEDDING_MODEL": "embed-9",
        "EMBEDDING_BASE_URL": server.base_url,
        "EMBEDDING_API_KEY": server.api_key,
    }
    async with serving(**settings) as worker:
        embedder = parts_of(worker).models.embedder
        await embedder.embed(["a text"])
        assert (embedder.model, embedder.dimensions) == ("embed-9", 256)
        assert [asked.path for asked in server.received] == ["/v1/embeddings"]


async def test_embeddings_come_from_the_staged_table(worker: Worker) -> None:
    embedder = parts_of(worker).models.embedder
    assert (embedder.model, embedder.dimensions) == ("static-minilm-256", 256)
    assert await embedder.embed(["a text"]) == await shipped_embedder().embed(["a text"])


async def test_recall_is_reranked_when_the_settings_name_a_reranker(worker: Worker) -> None:
    assert parts_of(worker).models.reranker is None
    with model_requests_allowed():
        async with serving(RERANK_MODEL="@cf/rerank", ALLOW_MODEL_REQUESTS="true") as reranked:
            await reranked.tenant()
            asked: list[str] = []

            def answer(model: str, inputs: Mapping[str, Any]) -> object:
                asked.append(f"{model} {inputs['query']}")
                return {"response": [{"id": place, "score": 0.5} for place in range(len(inputs["contexts"]))]}

            reranked.ai._answer = answer
            for content in ("Ann drinks tea.", "Bob drinks tea."):
                await reranked.request("POST", "/admin/tenants/acme/memories", {"content": content})
            recall = {"query": "Who drinks tea?"}
            found = await reranked.request("POST", "/admin/tenants/acme/memories/recall", recall)
            assert len(found.content["memories"]) == 2, found.content
            assert asked == ["@cf/rerank Who drinks tea?"]
            assert parts_of(reranked).models.reranker is parts_of(reranked).instances.ports(_storage()).reranker()
        async with serving(RERANK_MODEL="@cf/rerank") as forbidden:
            with pytest.raises(Misconfigured):
                _ = parts_of(forbidden).models.reranker


async def test_facts_are_extracted_by_the_model_that_the_settings_name(server: ModelServer) -> None:
    settings = {
        "EXTRACTOR": "llm",
        "CHAT_PROVIDER": "openai",
        "CHAT_MODEL": "gpt-9",
        "CHAT_BASE_URL": server.base_url,
        "CHAT_API_KEY": server.api_key,
    }
    async with serving(**settings) as worker:
        await worker.tenant()
        server.say(ChatReply(json.dumps({"facts": []})))
        conversation = {"conversation": "c", "messages": [{"speaker": "Ann", "content": "I moved to Oslo."}]}
        answer = await worker.request("POST", "/admin/tenants/acme/memories/ingest", conversation)
        assert answer.content["state"] == "completed", answer.content
        assert [asked.body["model"] for asked in server.received] == ["gpt-9"]
        assert len(await spent(worker)) == 1, "the same messages ask no model again"


async def test_an_extraction_is_counted_also_if_its_answer_is_unusable_and_refused_without_tokens(
    server: ModelServer,
) -> None:
    settings = {
        "EXTRACTOR": "llm",
        "CHAT_PROVIDER": "openai",
        "CHAT_MODEL": "gpt-9",
        "CHAT_BASE_URL": server.base_url,
        "CHAT_API_KEY": server.api_key,
    }
    async with serving(**settings) as worker:
        for tenant in ("acme", "other"):
            await worker.tenant(tenant)
        server.say(ChatReply("no JSON", usage=Usage(300, 20, 100)))
        server.say(ChatReply(json.dumps({"facts": []}), usage=Usage(300, 20, 100)))
        memories = "/admin/tenants/acme/memories"
        conversation = {"conversation": "c", "messages": [{"speaker": "Ann", "content": "I moved to Oslo."}]}
        failed = await worker.request("POST", f"{memories}/ingest", conversation)
        assert (failed.status, failed.content["cause"]) == (503, "malformed_extraction"), failed.content
        for _ in range(2):
            answer = await worker.request("POST", f"{memories}/ingest", conversation)
            assert answer.content["state"] == "completed", answer.content
        [one] = await spent(worker)
        assert (one["purpose"], one["agent_type"], one["model"], one["runs"]) == ("ingest", "", "gpt-9", 0)
        assert (one["calls"], one["input_tokens"], one["cached_input_tokens"], one["output_tokens"]) == (
            2,
            600,
            200,
            40,
        )
        assert await spent(worker, "purpose=ingest") == [one]
        assert await spent(worker, "purpose=run") == await spent(worker, "agent_type=sdr") == []
        assert await spent(worker, tenant="other") == []
        quotas = "/admin/tenants/acme/quotas"
        used = (await worker.request("GET", quotas)).content["tokens_a_day"]
        assert used == {"most": None, "used": 640}
        assert (await worker.request("PUT", quotas, {"tokens_a_day": 640})).status == 200
        conversation["conversation"] = "d"
        refused = await worker.request("POST", f"{memories}/ingest", conversation)
        assert (refused.status, refused.content["cause"]) == (503, "token_quota"), refused.content
        assert len(server.received) == 2, "no model is asked"


NDJSON = {"content-type": "application/x-ndjson"}


async def spent(worker: Worker, query: str = "", tenant: str = "acme") -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = (await worker.request("GET", f"/admin/tenants/{tenant}/costs?{query}")).content[
        "costs"
    ]
    return listed


def script(name: str, answer: object) -> dict[str, Any]:
    rule = {"rule": "answer", "when": {"last": "user"}, "reply": {"text": json.dumps(answer)}}
    return {"name": name, "rules": [rule]}


async def test_answers_are_judged_and_facts_extracted_by_the_scripts_of_these_names() -> None:
    scripts = [script("judge", {"score": 0.75, "reason": "polite"}), script("extraction", {"facts": []})]
    async with serving(agents=staged_agents(scripts=scripts), EVAL_JUDGE="chat", EXTRACTOR="llm") as worker:
        await worker.tenant()
        case = {"id": "one", "input": "Good morning!", "expected": {"judge": {"criteria": "Polite."}}}
        dataset = {"target": {"agent": "order_triage"}, "cases": [case]}
        assert (await worker.request("PUT", "/admin/tenants/acme/evals/datasets/set", dataset)).status == 201
        run = (await worker.request("POST", "/admin/tenants/acme/evals/runs", {"dataset": "set"})).content["run"]
        [result] = run["results"]
        assert [(score["name"], score["value"]) for score in result["scores"]] == [("judge", 0.75)]
        conversation = {"conversation": "c", "messages": [{"speaker": "Ann", "content": "I moved to Oslo."}]}
        ingested = await worker.request("POST", "/admin/tenants/acme/memories/ingest", conversation)
        assert (ingested.content["state"], ingested.content["extracted"]) == ("completed", 0), ingested.content
        counted = [(one["purpose"], one["agent_type"], one["calls"]) for one in await spent(worker)]
        assert counted == [("judge", "order_triage", 1), ("evaluation", "order_triage", 1), ("ingest", "", 1)]
        await worker.tenant("copy")
        cursor: str | None = ""
        while cursor is not None:
            exported = await worker.request("GET", f"/admin/tenants/acme/export?{cursor and 'cursor='}{cursor}")
            for _ in range(2):
                copied = await worker.request("POST", "/admin/tenants/copy/import", body=exported.body, headers=NDJSON)
                assert copied.status == 200, copied.body
            cursor = exported.headers.get("x-next-cursor")
        assert await spent(worker, tenant="copy") == await spent(worker)


def _storage() -> Any:
    from tests.shell.platform.objects import Storage

    return Storage()
