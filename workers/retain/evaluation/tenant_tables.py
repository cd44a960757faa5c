"""The tables of evaluations."""

from __future__ import annotations

from retain.tenants.tables import TenantTable, Texts

TENANT_TABLES = (
    TenantTable(
        "eval_results",
        ("run_id", "position"),
        texts=Texts(
            ("case_id", "output", "observed", "scores", "error"),
            "case_id = 'erased', output = NULL, observed = NULL, scores = NULL, error = NULL",
        ),
        users="nobody",
    ),
    TenantTable(
        "eval_runs",
        ("run_id",),
        texts=Texts(  # the row stays: the scratch tenants that are not erased yet are found through it
            ("dataset", "definition", "request_key"),
            "dataset = 'erased', definition = '{\"target\":{\"recall\":{}}}', request_key = NULL",
        ),
        users="nobody",
    ),
    TenantTable("eval_scratches", ("scratch_id",), tenants="scratch_id", users="nobody"),
    TenantTable(
        "eval_cases",
        ("tenant_id", "name", "version", "position"),
        texts=Texts(("name", "content"), "content = NULL"),
    ),
    TenantTable("eval_datasets", ("tenant_id", "name", "version"), texts=Texts(("name", "definition"))),
)
