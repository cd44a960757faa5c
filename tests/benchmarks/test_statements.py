"""Statements next to chats are written as `benchmarks.recall` reads them."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.recall import ROOT, conversations, measure, write
from benchmarks.statements import statements
from retain.models.embedders.static import MULTILINGUAL, StaticEmbedder, table_file

STATED = ("我叔叔的电话号码是15398950313。", "我叔叔喜欢看书。")
ASKED = "我叔叔喜欢干什么"


def written(folder: Path) -> tuple[Path, Path]:
    """Write two cases of the first data set and one person's chat of the second."""
    case = {
        "tid": 0,
        "message_list": [
            {"mid": number, "message": text, "time": f"2024年04月0{number + 1}日 周一 08:12"}
            for number, text in enumerate(STATED)
        ],
        "question_list": [{"question": ASKED, "target_step_id": [1]}],
    }
    cases = folder / "data_generation/final_dataset/messages_and_QAs/01_simple_roles.json"
    chats = folder / "eval_data/cn/memory_bank_cn.json"
    exchanges = [
        {"query": "你好。", "response": " "},
        {"query": "我喜欢看书。", "response": "你喜欢看什么书"},
    ]
    people = {"ann": {"history": {"2023-04-27": exchanges}}}
    for path, content in ((cases, [case, case]), (chats, people)):
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(content))
    return folder, folder


async def test_a_memory_has_a_chat_and_the_statements_of_one_question(tmp_path: Path) -> None:
    path = tmp_path / "statements.jsonl.gz"
    write(path, statements(*written(tmp_path), every=2))
    [memory] = conversations(path)
    assert [(item["session"], item["speaker"]) for item in memory["items"]] == [
        *[("2023-04-27", speaker) for speaker in ("user", "user", "assistant")],
        *[(None, None)] * 2,
    ]
    assert memory["items"][4] == {
        "id": "1",
        "session": None,
        "at": "2024-04-02 08:12:00",
        "speaker": None,
        "text": STATED[1],
    }
    assert memory["questions"] == [{"text": ASKED, "category": "simple", "before": None, "evidence": ["1"]}]


async def test_full_text_alone_finds_words_inside_a_chinese_sentence(tmp_path: Path) -> None:
    path = tmp_path / "statements.jsonl.gz"
    write(path, statements(*written(tmp_path), every=1))
    results = await measure(path, StaticEmbedder(ROOT / "models" / table_file(MULTILINGUAL), model=MULTILINGUAL))
    assert results["full text", "simple"][0][0] == 1.0
