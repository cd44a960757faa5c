"""Erasing mentions of a term outside semantic memory, in the tables that declare texts (`retain.tenants.tables`).

Every row is read and compared in code: a pattern in SQL would miss other spellings of the same words.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from retain.attachments.attachment import object_key
from retain.json_text import read_json
from retain.lifecycle.erasure.receipts import ErasureJob
from retain.lifecycle.erasure.slices import Slice
from retain.lifecycle.stores import Stores
from retain.lifecycle.terms import Term
from retain.limits.pages import cut, sized, text_bytes
from retain.ports import Row, SqlValue, Statement
from retain.tenants.tables import TenantTable, Texts

OWNERS = 20
"""Most rows with parts per slice."""
OWNERS_BYTES = 4_000_000
"""Bytes of such rows with their parts after which a slice ends: a run has thousands of events. Each row counts 150 more."""
ROWS = 100
FILES = 5
"""Text files per slice: each is read whole, one after the other."""
_TEXTS = """
SELECT attachment_id FROM attachments WHERE tenant_id = ? AND attachment_id > ? AND sha256 IS NOT NULL
  AND media_type NOT LIKE 'image/%' AND media_type <> 'application/pdf' ORDER BY attachment_id LIMIT ?
"""
_GONE = "DELETE FROM attachments WHERE attachment_id IN (SELECT value FROM json_each(?))"

_LISTED = "{key} IN (SELECT value FROM json_each({ids}))"


async def erase_with_parts(stores: Stores, job: ErasureJob) -> Slice:
    """Erase a page of rows that have parts, such as runs, with the parts, if the row or a part names the term.

    Such a row stays with its texts emptied, unless its key or a `whole` column names the term: then it is deleted.
    """
    owners = {table.name: table for table in stores.tables if table.parts}
    name, after = _place(job, list(owners))
    if name is None:
        return Slice.DONE
    owner = owners[name]
    texts, [key] = owner.texts, owner.keys
    page = (await stores.sql.run(_owners_that_fit(owner), job.tenant_id, *(after or [""]))).rows
    listed = json.dumps([row[key] for row in page])
    where = f"WHERE {_LISTED.format(key=key, ids='?1')} AND +tenant_id = ?2"
    rows, *parts = await stores.sql.batch(
        [
            (f"SELECT * FROM {name} {where}", (listed, job.tenant_id)),
            *(
                (f"SELECT {key}, {', '.join(part.columns)} FROM {table} {where}", (listed, job.tenant_id))
                for table, part in owner.parts.items()
            ),
        ]
    )
    term = Term.of(job.request["subject"])
    whole = {row[key] for row in rows.rows if _naming(term, texts, (key, *texts.whole), row)}
    named = whole | {row[key] for row in rows.rows if _naming(term, texts, texts.columns, row)}
    for part, found in zip(owner.parts.values(), parts, strict=True):
        named |= {row[key] for row in found.rows if _naming(term, part, part.columns, row)}
    is_last = not page or page[0]["page_rows"] == len(page) < OWNERS
    cursor = _following(name, list(owners)) if is_last else [name, page[-1][key]]
    await stores.sql.batch(
        [
            *job.moved(stores.clock(), {f"d1.{name}": len(named)}, cursor=cursor),
            *(statement for table in owner.parts for statement in _gone(job, table, key, named)),
            *_emptied(job, owner, named - whole),
            (f"DELETE FROM {name} WHERE {_LISTED.format(key=key, ids='?')}", (json.dumps(sorted(whole)),)),
        ]
    )
    return Slice.MORE


async def erase_texts(stores: Stores, job: ErasureJob) -> Slice:
    """Erase the other tables' rows that name the term, one page of one table at a time."""
    tables = {table.name: table for table in stores.tables if table.texts.columns and not table.parts}
    name, after = _place(job, list(tables))
    if name is None:
        return Slice.DONE
    keys, texts = tables[name].keys, tables[name].texts
    key = ", ".join(keys)
    columns = ", ".join(f"{column} AS text_{column}" for column in (*texts.columns, *texts.whole))
    beyond = f"AND ({key}) > ({', '.join('?' * len(keys))})" if after else ""
    page = f"SELECT {key}, {columns} FROM {name} WHERE tenant_id = ? {beyond} ORDER BY {key} LIMIT {ROWS + 1}"
    read = [f"text_{column}" for column in (*texts.columns, *texts.whole)]
    rows, is_more = cut((await stores.sql.run(sized(page, key, *read), job.tenant_id, *after)).rows, ROWS)
    term = Term.of(job.request["subject"])
    where = " AND ".join(f"{name} = ?" for name in keys)
    gone: list[Statement] = []
    for row in rows:
        named = _naming(term, texts, (*texts.columns, *texts.whole), row, "text_")
        if named:
            kept = texts.emptied is not None and not named & {*keys, *texts.whole}
            erased = f"UPDATE {name} SET {texts.emptied} WHERE {where}" if kept else f"DELETE FROM {name} WHERE {where}"
            gone.append((erased, tuple(row[column] for column in keys)))
    cursor = [name, *(rows[-1][column] for column in keys)] if is_more else _following(name, list(tables))
    await stores.sql.batch([*job.moved(stores.clock(), {f"d1.{name}": len(gone)}, cursor=cursor), *gone])
    return Slice.MORE


async def erase_files_that_mention(stores: Stores, job: ErasureJob) -> Slice:
    """Erase the text files whose content names the term. What an image or a PDF shows is not read; their names are."""
    rows = (await stores.sql.run(_TEXTS, job.tenant_id, job.cursor or "", FILES)).rows
    if not rows:
        return Slice.DONE
    term, named = Term.of(job.request["subject"]), list[str]()
    for row in rows:
        content = await stores.objects.get(object_key(job.tenant_id, row["attachment_id"]))
        if content is not None and term.in_text(content.decode("utf-8", "replace")):
            named.append(row["attachment_id"])
    counts = {"d1.attachments": len(named)}
    moved = job.moved(stores.clock(), counts, cursor=rows[-1]["attachment_id"])
    await stores.sql.batch([*moved, (_GONE, (json.dumps(named),))])
    return Slice.MORE


def _owners_that_fit(owner: TenantTable) -> str:
    """Return the query for the keys of a tenant's next rows with parts: as many as have `OWNERS_BYTES` together."""
    [key] = owner.keys
    texts = [f"o.{column}" for column in (*owner.texts.columns, *owner.texts.whole)]
    sizes = [text_bytes(texts)] + [
        f"(SELECT COALESCE(SUM({text_bytes(part.columns)} + 150), 0) FROM {table} WHERE {key} = o.{key})"
        for table, part in owner.parts.items()
    ]
    some = f"SELECT o.{key}, 150 + {' + '.join(sizes)} AS size FROM {owner.name} o WHERE tenant_id = ?1 AND {key} > ?2"
    return (
        f"SELECT {key}, page_rows FROM (SELECT {key}, COUNT(*) OVER () AS page_rows, SUM(size) OVER (ORDER BY {key}) - size"
        f" AS before FROM ({some} ORDER BY {key} LIMIT {OWNERS})) WHERE before < {OWNERS_BYTES} ORDER BY {key}"
    )


def _place(job: ErasureJob, tables: Sequence[str]) -> tuple[str | None, list[SqlValue]]:
    """Return the table in which the step continues, and the key after which; None when every table is done."""
    match job.cursor:
        case []:
            return None, []
        case [str(name), *after] if name in tables:
            return name, after
    return (tables[0] if tables else None), []


def _following(table: str, tables: Sequence[str]) -> list[str]:
    """Return the cursor after the last page of a table."""
    return list(tables[tables.index(table) + 1 :][:1])


def _naming(term: Term, texts: Texts, columns: Collection[str], row: Row, prefix: str = "") -> set[str]:
    """Return which of the columns name the term. prefix: of the columns' names in the row."""
    return {column for column in columns if _names(term, texts, column, row[f"{prefix}{column}"])}


def _names(term: Term, texts: Texts, column: str, text: str | None) -> bool:
    if text is None or column not in texts.searched:
        return term.in_stored(text)
    try:
        parsed = read_json(text)
    except ValueError:
        return term.in_text(text)
    return term.in_json(texts.searched[column](parsed))


def _gone(job: ErasureJob, table: str, key: str, ids: Collection[str]) -> list[Statement]:
    """Return the statements that count and erase the rows with these keys."""
    listed = json.dumps(sorted(ids))
    return [
        job.counted(f"d1.{table}", f"SELECT COUNT(*) FROM {table} WHERE {_LISTED.format(key=key, ids='?3')}", listed),
        (f"DELETE FROM {table} WHERE {_LISTED.format(key=key, ids='?')}", (listed,)),
    ]


def _emptied(job: ErasureJob, table: TenantTable, ids: Collection[str]) -> list[Statement]:
    """Return the statement that empties the texts of the rows with these keys; `marked` then names the receipt."""
    texts, listed = table.texts, json.dumps(sorted(ids))
    where = f"WHERE {_LISTED.format(key=table.keys[0], ids='?')}"
    if texts.emptied is None:
        return [(f"DELETE FROM {table.name} {where}", (listed,))]
    if texts.marked is None:
        return [(f"UPDATE {table.name} SET {texts.emptied} {where}", (listed,))]
    mark = json.dumps({"erased": job.receipt.receipt_id})
    return [(f"UPDATE {table.name} SET {texts.marked} = ?, {texts.emptied} {where}", (mark, listed))]
