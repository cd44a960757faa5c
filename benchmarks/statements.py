"""Write statements next to chats, in Chinese, in the form that `benchmarks.recall` measures.

Both data sets stay outside the repository, and no part of recall was chosen on them but the one that decision 7 names.

*MemSim* (https://github.com/nuster1128/MemSim, its data set MemDaily): what somebody tells an assistant of relatives,
colleagues, events, places and things, a dozen sentences, and a question: simple, with a condition, of two compared, of
several counted, of what follows from the answer, or at the end of talk about other things ("noisy").
*MemoryBank* (MIT, https://github.com/zhongwanjun/MemoryBank-SiliconFriend): ten days of chats of fifteen people with an
assistant.

A memory here has the statements for one question, as records outside conversations, and the chats of one of the fifteen.

    python -m benchmarks.statements path/to/MemSim path/to/MemoryBank-SiliconFriend folder --every 5
    python -m benchmarks.recall folder --table static-multilingual-256
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.recall import write
from retain.json_text import read_own_json

_STATEMENTS = "data_generation/final_dataset/messages_and_QAs"
_CHATS = "eval_data/cn/memory_bank_cn.json"
_WEEKDAY = re.compile(" 周.")


def statements(folder: Path, chats: Path, every: int) -> Iterator[dict[str, Any]]:
    """Yield a memory for one question of each `every` of each of the data set's files."""
    people = [*read_own_json((chats / _CHATS).read_text()).values()]
    for path in sorted((folder / _STATEMENTS).glob("*.json")):
        kind = path.stem[3 : path.stem.rindex("_")]
        for case in read_own_json(path.read_text())[::every]:
            stated = [
                {
                    "id": f"{one['mid']}",
                    "session": None,
                    "at": _at(one["time"]),
                    "speaker": None,
                    "text": one["message"],
                }
                for one in case["message_list"]
            ]
            [asked] = case["question_list"]
            evidence = sorted({str(one) for one in asked["target_step_id"]})
            question = {"text": asked["question"], "category": kind, "before": None, "evidence": evidence}
            yield {"items": [*_chats(people[case["tid"] % len(people)]), *stated], "questions": [question]}


def _at(time: str) -> str:
    """Return a time of the data set, such as "2024年04月01日 周一 08:12", as it is written here."""
    return f"{datetime.strptime(_WEEKDAY.sub('', time), '%Y年%m月%d日 %H:%M')}"  # noqa: DTZ007 - written without a zone


def _chats(person: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for day, exchanges in person["history"].items():
        for number, exchange in enumerate(exchanges):
            for second, (speaker, part) in enumerate((("user", "query"), ("assistant", "response"))):
                if exchange[part].strip():
                    yield {
                        "id": f"{day}:{number}:{part}",
                        "session": day,
                        "at": f"{day} 10:{number:02d}:{second:02d}",
                        "speaker": speaker,
                        "text": exchange[part],
                    }


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Write statements next to chats in the form of benchmarks.recall.")
    parser.add_argument("statements", type=Path, help="a clone of MemSim")
    parser.add_argument("chats", type=Path, help="a clone of MemoryBank-SiliconFriend")
    parser.add_argument("into", type=Path, help="the folder to write to")
    parser.add_argument("--every", type=int, default=1, help="take one question of so many (1: all)")
    options = parser.parse_args()
    write(options.into / "statements.jsonl.gz", statements(options.statements, options.chats, options.every))


if __name__ == "__main__":
    main()
