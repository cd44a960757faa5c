"""The codes of errors: a closed set, by the class that is raised with them. docs/errors.md says what each asks for.

A code is part of the public interface: programs decide by it. A type checker refuses one that its class does not have.
"""

from __future__ import annotations

from typing import Literal, NewType

ForeignCode = NewType("ForeignCode", str)
"""A code outside the set: from an agent's own functions, a command of the operator, or another version of Retain."""

InvalidInputCode = Literal[
    "empty_content",
    "empty_query",
    "forbidden_upstream",
    "invalid_agent_type",
    "invalid_arguments",
    "invalid_as_of",
    "invalid_at_ms",
    "invalid_baseline",
    "invalid_body",
    "invalid_chat_message",
    "invalid_confidence",
    "invalid_content",
    "invalid_conversation",
    "invalid_credential",
    "invalid_cursor",
    "invalid_dataset_name",
    "invalid_document",
    "invalid_edit",
    "invalid_expires_at_ms",
    "invalid_filter",
    "invalid_head",
    "invalid_house",
    "invalid_id",
    "invalid_idempotency_key",
    "invalid_importance",
    "invalid_input",
    "invalid_instance_id",
    "invalid_job_id",
    "invalid_key",
    "invalid_kind",
    "invalid_last_event_id",
    "invalid_lifetime",
    "invalid_limit",
    "invalid_line",
    "invalid_message",
    "invalid_metadata",
    "invalid_namespace",
    "invalid_object",
    "invalid_position",
    "invalid_predicate",
    "invalid_public_key",
    "invalid_release",
    "invalid_request",
    "invalid_schema",
    "invalid_scope",
    "invalid_scopes",
    "invalid_score",
    "invalid_script",
    "invalid_speaker",
    "invalid_status",
    "invalid_subject",
    "invalid_tenant",
    "invalid_term",
    "invalid_tool_configuration",
    "invalid_tool_name",
    "invalid_top_k",
    "invalid_ttl",
    "invalid_url",
    "invalid_user",
    "invalid_valid_from_ms",
    "invalid_working_key",
    "invalid_working_value",
    "malformed_json",
    "no_messages",
    "not_confirmed",
    "pii_outside_warm",
    "recalled_text",
    "reserved_value",
    "statement_not_allowed",
    "tier_missing",
    "unknown_data_type",
    "unknown_task_type",
    "unsupported_value",
    "user_not_findable",
    "value_too_deep",
    "vector_batch_empty",
    "vector_dimensions",
    "vector_id_empty",
    "vector_index_refused",
    "vector_is_zero",
    "vector_namespace_empty",
    "vector_not_finite",
    "vector_top_k",
]

MethodNotAllowedCode = Literal["method_not_allowed",]

LimitExceededCode = Literal[
    "body_too_large",
    "chat_message_too_large",
    "chat_session_too_large",
    "content_too_large",
    "credential_too_long",
    "delegation_depth",
    "delegation_limit",
    "filter_too_large",
    "import_too_large",
    "input_too_large",
    "invalid_line",
    "key_too_long",
    "limit_exceeded",
    "metadata_too_large",
    "query_too_large",
    "statement_too_long",
    "too_many_lines",
    "too_many_messages",
    "too_many_parameters",
    "too_many_scopes",
    "tool_configuration_too_large",
    "url_too_long",
    "value_too_large",
    "vector_batch_too_large",
    "vector_document_too_large",
    "vector_filter_too_large",
    "vector_id_too_long",
    "vector_ids_too_many",
    "vector_metadata_too_large",
    "vector_namespace_too_long",
    "vector_top_k_too_large",
    "working_memory_full",
]

UnauthenticatedCode = Literal[
    "invalid_access_token",
    "invalid_api_key",
    "missing_access_token",
    "missing_api_key",
    "unauthenticated",
]

ForbiddenCode = Literal[
    "cross_origin",
    "cross_site_request",
    "decryption_failed",
    "delegate_not_allowed",
    "forbidden",
    "memory_disabled",
    "no_house",
    "sharing_not_allowed",
    "tool_not_allowed",
]

NotFoundCode = Literal[
    "case_erased",
    "no_stubbed_answer",
    "no_such_dataset",
    "no_such_evaluation",
    "no_such_function",
    "no_such_instance",
    "no_such_item",
    "no_such_job",
    "no_such_memory",
    "no_such_receipt",
    "no_such_route",
    "no_such_run",
    "not_found",
    "unknown_agent",
    "unknown_tenant",
]

ConflictCode = Literal[
    "already_answered",
    "backfill_not_allowed",
    "conflict",
    "content_taken",
    "dataset_changed",
    "duplicate_content",
    "evaluation_running",
    "idempotency_key_reused",
    "instance_busy",
    "item_erased",
    "migration_moved",
    "no_procedure",
    "not_ready",
    "not_waiting",
    "run_cancelled",
    "runs_not_comparable",
    "scratch_taken",
    "tenant_being_erased",
    "tenant_erased",
    "wrong_phase",
]

QuotaExceededCode = Literal[
    "episode_limit",
    "quota_exceeded",
    "too_many_datasets",
]

UnavailableCode = Literal[
    "access_keys_unavailable",
    "agent_instance_unavailable",
    "body_interrupted",
    "contended",
    "d1_unavailable",
    "database_failed",
    "delegate_running",
    "hot_value_stale",
    "kv_unavailable",
    "model_rate_limited",
    "model_unavailable",
    "object_storage_unavailable",
    "outbox_waits",
    "r2_unavailable",
    "stream_interrupted",
    "unavailable",
    "upstream_status",
    "upstream_timeout",
    "upstream_unreachable",
    "vector_index_unavailable",
    "workers_ai_unavailable",
]

UpstreamFailedCode = Literal[
    "answer_cut",
    "cold_value_missing",
    "content_filtered",
    "invalid_result",
    "malformed_answer",
    "malformed_extraction",
    "malformed_tool_call",
    "malformed_verdict",
    "model_quota",
    "model_refused",
    "response_too_large",
    "run_failed",
    "run_waits",
    "script_exhausted",
    "upstream_failed",
    "upstream_redirected",
    "upstream_status",
]

MisconfiguredCode = Literal[
    "access_not_configured",
    "ambiguous_legacy_pattern",
    "contradictory_rules",
    "credential_missing",
    "credential_unreadable",
    "credentials_key_missing",
    "embedding_dimensions",
    "embedding_table",
    "file_missing",
    "invalid_credentials_key",
    "invalid_encryption_key",
    "invalid_function",
    "invalid_key_record",
    "invalid_legacy_pattern",
    "invalid_memory_key",
    "invalid_placement",
    "invalid_script",
    "invalid_setting",
    "invalid_tool_configuration",
    "item_unreadable",
    "judge_off",
    "memory_key_missing",
    "migration_failed",
    "misconfigured",
    "model_credentials",
    "model_endpoint",
    "model_requests_forbidden",
    "model_unnamed",
    "no_ai_binding",
    "no_such_script",
    "no_tiers",
    "not_staged",
    "reserved_service",
    "tier_missing",
    "unknown_extractor",
    "unknown_judge",
    "unknown_provider",
    "unknown_schedule",
    "unknown_statement",
    "vector_dimensions_changed",
    "wrong_instance",
    "wrong_scope",
]

ReportedCode = Literal[
    "attempted_too_often",
    "cancelled",
    "case_not_ended",
    "context_full",
    "erased",
    "interrupted",
    "message_changed",
    "outcome_unknown",
    "records_refused",
    "rejected",
    "resumed_too_often",
    "token_budget",
    "turn_limit",
]
"""What an answer or a run's event names, and nothing is raised with."""

Code = (
    Literal["internal", "constraint", "no_such_tool", "schema_mismatch", "unknown_scope"]
    | InvalidInputCode
    | MethodNotAllowedCode
    | LimitExceededCode
    | UnauthenticatedCode
    | ForbiddenCode
    | NotFoundCode
    | ConflictCode
    | QuotaExceededCode
    | UnavailableCode
    | UpstreamFailedCode
    | MisconfiguredCode
    | ReportedCode
)
"""Every code of the Worker."""
