"""Limits that other tests try, and those that nobody can pass from outside; each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

_FILES = "tests/agents/test_attachments.py::test_what_a_limit_allows_is_taken_and_more_is_refused"
_STALLED = "tests/shell/test_deadlines.py::test_a_body_that_does_not_come_is_given_up"
_DEADLINES = "tests/shell/test_deadlines.py::test_a_call_that_hangs_ends_with_the_code_of_its_store"

TESTS: Mapping[str, str] = {
    "retain.admin.access.MAX_TOKEN_BYTES": "tests/shell/test_access.py::test_a_token_has_a_longest_length",
    "retain.agent_memory.handlers.MAX_PER_PAGE": "tests/agent_memory/test_refusals.py::"
    "test_lengths_have_the_limits_that_cloudflare_documents",
    "retain.agent_memory.profile.MAX_QUERY_BYTES": "tests/agent_memory/test_refusals.py::"
    "test_lengths_have_the_limits_that_cloudflare_documents",
    "retain.agents.calls.asked_files.MAX_BODY_BYTES": "tests/e2e/test_attachments.py::"
    "test_a_body_with_files_has_a_largest_size",
    "retain.agents.calls.asked_files.MAX_INLINE_BYTES": _FILES,
    "retain.agents.calls.asked_files.MAX_NAME": _FILES,
    "retain.attachments.attachment.MAX_ATTACHED": _FILES,
    "retain.attachments.attachment.MAX_BYTES": _FILES,
    "retain.attachments.attachment.MAX_SENT_BYTES": _FILES,
    "retain.attachments.attachment.MAX_UNUSED": "tests/lifecycle/test_attachments.py::"
    "test_a_user_has_so_many_files_that_no_run_has_named",
    "retain.attachments.media_types.MAX_NAME": _FILES,
    "retain.admin.definitions.checking.MAX_PROBLEMS": "tests/admin/test_tenant_definitions.py::"
    "test_an_answer_names_a_bounded_number_of_problems",
    "retain.admin.definitions.defining.MAX_AGENTS": "tests/admin/test_tenant_definitions.py::"
    "test_a_tenant_has_a_bounded_number_of_agents",
    "retain.admin.definitions.defining.MAX_VERSIONS": "tests/admin/test_tenant_definitions.py::"
    "test_versions_are_bounded_and_the_oldest_go_after_ninety_days",
    "retain.agents.versions.version.MAX_DEFINITION_BYTES": "tests/admin/test_tenant_definitions.py::"
    "test_a_definition_has_a_largest_size",
    "retain.limits.deadlines.OBJECT_STREAM_MS": _DEADLINES,
    "retain.agents.calls.timing.MAX_AHEAD_MS": "tests/agents/test_schedule_times.py::"
    "test_one_time_is_in_the_next_five_years_and_has_no_second",
    "retain.agents.calls.timing.MAX_CRON_CHARACTERS": "tests/agents/test_schedule_times.py::"
    "test_the_longest_expression_is_read_and_one_character_more_is_refused",
    "retain.agents.queueing.schedules.MAX_SCHEDULES": "tests/agents/test_schedules.py::"
    "test_an_instance_has_a_bounded_number_of_schedules_that_have_not_ended",
    "retain.lifecycle.erasure.slices.MAX_UNITED": "tests/lifecycle/test_user_erasure.py::"
    "test_queries_are_united_however_many_they_are",
    "retain.agents.tools.known.MAX_FORGOTTEN": "tests/agents/test_forget_memory.py::"
    "test_other_arguments_are_refused_and_delete_nothing",
    "retain.agents.execution.asking.MAX_ANSWER_BYTES": "tests/agents/test_bad_answers.py::"
    "test_the_largest_answer_is_logged_and_reaches_d1",
    "retain.agents.execution.event_stream.MAX_FAILURES": "tests/agents/test_streams.py::"
    "test_a_stream_outlives_an_instance_that_cannot_be_reached_for_a_moment",
    "retain.agents.execution.event_stream.MAX_QUIET": "tests/agents/test_streams.py::"
    "test_a_quiet_stream_keeps_its_connection_alive_and_ends_after_a_while",
    "retain.agents.execution.executor.MAX_RESUMPTIONS": "tests/agents/test_interrupted_runs.py::"
    "test_a_function_tool_that_kills_its_object_is_given_up_sooner",
    "retain.agents.execution.executor.MAX_OTHER_RESUMPTIONS": "tests/agents/test_interrupted_runs.py::"
    "test_a_run_that_is_interrupted_each_time_is_given_up",
    "retain.agents.execution.outage.MAX_WAIT_MS": "tests/agents/test_model_outage.py::"
    "test_waits_double_up_to_the_longest_and_differ_between_runs",
    "retain.agents.front_ends.ag_ui_input.MAX_NAME": "tests/agents/front_ends/test_ag_ui.py::"
    "test_what_cannot_be_done_is_refused_before_the_stream",
    "retain.agents.front_ends.messages.MAX_PRIOR_BYTES": "tests/agents/front_ends/test_chat_requests.py::"
    "test_as_much_of_the_end_of_a_conversation_is_read_as_a_run_takes",
    "retain.agents.front_ends.messages.MAX_PRIOR_MESSAGES": "tests/agents/front_ends/test_chat_requests.py::"
    "test_as_much_of_the_end_of_a_conversation_is_read_as_a_run_takes",
    "retain.agents.learning.own_words.MAX_FACTS": "tests/agents/test_run_learning.py::"
    "test_a_model_that_finds_too_much_is_cut",
    "retain.agents.learning.run_learning.MAX_ATTEMPTS": "tests/agents/test_run_learning.py::"
    "test_a_model_that_fails_is_asked_again_by_the_alarm_and_given_up_at_last",
    "retain.agents.calls.asked.MAX_SCHEMA_BYTES": "tests/agents/test_routes.py::"
    "test_an_invalid_request_is_refused_before_an_instance_is_asked",
    "retain.agents.runs.episode_text.MAX_EPISODE_BYTES": "tests/agents/test_episode_text.py::"
    "test_a_long_episode_is_cut",
    "retain.agents.runs.owed.MAX_PARKED_CHARACTERS": "tests/agents/test_parked_runs.py::"
    "test_a_run_that_is_too_large_for_a_copy_waits_without_one",
    "retain.agents.runs.run_state.MAX_ANSWERS": "tests/agents/test_bad_answers.py::"
    "test_a_model_that_never_gives_a_usable_answer_fails_the_run",
    "retain.agents.tools.schedule_wakeup.MAX_WAKEUP_INPUT_BYTES": "tests/agents/test_schedules.py::"
    "test_the_longest_input_wakes",
    "retain.agents.tools.built_in.MAX_RESULT_BYTES": "tests/agents/test_tools.py::"
    "test_an_answer_is_cut_at_the_limit_and_says_so",
    "retain.agents.definitions.MAX_SERVED_NAME": "tests/mcp/test_client.py::"
    "test_a_definition_whose_names_collide_or_are_too_long_is_refused",
    "retain.mcp.client._MAX_SESSION_CHARACTERS": "tests/mcp/test_client.py::"
    "test_a_session_that_cannot_be_a_header_is_refused",
    "retain.gateway.guarded_fetch.MAX_TIMEOUT_MS": "tests/gateway/test_guarded_fetch.py::"
    "test_the_longest_address_time_and_answer_are_bounded",
    "retain.gateway.mcp.MAX_ANSWER_BYTES": "tests/gateway/test_mcp.py::"
    "test_an_answer_has_a_largest_size_and_over_rest_that_of_its_tool",
    "retain.gateway.provisioning.MAX_LIFETIME_MS": "tests/gateway/test_keys.py::test_a_key_lives_for_ten_years_at_most",
    "retain.mcp.client.MAX_PAGES": "tests/mcp/test_client.py::test_a_list_without_end_is_read_within_a_bound",
    "retain.mcp.client.MAX_DESCRIPTION_CHARACTERS": "tests/mcp/test_client.py::"
    "test_descriptions_are_cut_and_have_no_control_characters",
    "retain.mcp.client.MAX_SCHEMA_BYTES": "tests/mcp/test_client.py::test_a_schema_that_is_too_long_is_not_offered",
    "retain.agents.tools.delegate.MAX_DEPTH": "tests/agents/test_delegation.py::"
    "test_runs_are_nested_up_to_the_limit_and_no_deeper",
    "retain.application_keys.keys.MAX_CHARACTERS": "tests/application_keys/test_keys.py::"
    "test_the_longest_tenant_s_key_is_accepted",
    "retain.application_keys.tokens.MAX_CHARACTERS": "tests/application_keys/test_tokens.py::"
    "test_the_longest_token_is_read",
    "retain.application_keys.tokens.MAX_MINUTES": "tests/shell/test_application_keys.py::"
    "test_only_a_key_that_runs_agents_makes_tokens",
    "retain.application_keys.keys.MAX_KEYS": "tests/application_keys/test_keys.py::"
    "test_a_tenant_has_a_hundred_valid_keys_and_pages_list_each_once",
    "retain.admin.resources.runs.MAX_CANCELLED": "tests/shell/test_bulk_cancel.py::"
    "test_which_runs_are_meant_has_to_be_said",
    "retain.admin.resources.runs.MAX_TEXT": "tests/shell/test_lists.py::"
    "test_runs_are_listed_searched_and_shown_below_v1",
    "retain.webhooks.endpoints.MAX_WEBHOOKS": "tests/shell/test_webhooks.py::"
    "test_a_tenant_has_a_bounded_number_of_webhooks",
    "retain.webhooks.sender.MAX_ANSWER_BYTES": "tests/agents/test_webhooks.py::"
    "test_an_answer_that_is_too_long_is_not_read_and_its_status_counts",
    "retain.application_keys.origins.MAX_CHARACTERS": "tests/application_keys/test_origins.py::"
    "test_the_longest_origin_is_accepted",
    "retain.application_keys.origins.MAX_ORIGINS": "tests/shell/test_pages.py::"
    "test_origins_that_cannot_be_a_key_s_say_why",
    "retain.application_keys.preflights.MAX_READ": "tests/application_keys/test_origins.py::"
    "test_where_more_keys_have_origins_than_are_read_any_page_may_ask",
    "retain.contracts.backends.chat_kv.MAX_SEALED_BYTES": "tests/contracts/test_sealing.py::"
    "test_the_largest_sealed_conversation_fits_into_a_value_of_kv",
    "retain.evaluation.runner.MAX_ATTEMPTS": "tests/evaluation/test_runner.py::"
    "test_a_case_that_never_gets_through_is_errored_and_its_scratch_erased",
    "retain.ingest.ingestion.MAX_TRIES": "tests/ingest/test_jobs.py::"
    "test_a_job_that_others_keep_overtaking_or_whose_tenant_moves_waits_instead_of_failing",
    "retain.ingest.jobs.MAX_ATTEMPTS": "tests/ingest/test_jobs.py::"
    "test_a_job_that_always_crashes_is_finally_shown_as_failed",
    "retain.ingest.request.MAX_VALUE_CHARACTERS": "tests/ingest/test_request.py::"
    "test_a_value_that_is_too_long_is_marked_and_not_kept",
    "retain.ingest.speech.sentences.MAX_SENTENCE": "tests/ingest/test_rules.py::"
    "test_the_longest_sentence_that_rules_read_needs_no_exponential_search",
    "retain.items.rekeying.phases.MIN_READS": "tests/items/rekeying/test_migration.py::"
    "test_phase_3_waits_for_the_backfill_and_for_two_stable_cycles",
    "retain.items.tiered_client.MAX_PROMOTED_BYTES": "tests/items/test_client.py::test_a_large_value_is_not_promoted",
    "retain.json_schema.MAX_FORMATTED": "tests/test_text_patterns.py::test_a_text_with_a_format_has_a_longest_length",
    "retain.limits.deadlines.AI_MS": _DEADLINES,
    "retain.limits.deadlines.BODY_MS": _STALLED,
    "retain.limits.deadlines.BODY_BYTES_PER_MS": _STALLED,
    "retain.limits.room.BODY_BYTES": "tests/limits/test_room.py::"
    "test_a_body_that_arrives_keeps_no_room_from_requests_without_one",
    "retain.json_schema.MAX_STEPS": "tests/test_json_schema.py::"
    "test_a_check_that_follows_too_many_references_is_a_violation",
    "retain.json_schema.code.MAX_CODE_CHARACTERS": "tests/test_json_schema.py::"
    "test_a_schema_whose_code_would_be_too_long_is_refused",
    "retain.json_schema.code.MAX_SHOWN": "tests/test_json_schema.py::"
    "test_a_violation_shows_a_short_rule_and_names_a_long_one",
    "retain.limits.deadlines.INSTANCE_MS": _DEADLINES,
    "retain.limits.deadlines.KV_MS": _DEADLINES,
    "retain.limits.deadlines.OBJECTS_MS": _DEADLINES,
    "retain.limits.deadlines.SQL_MS": _DEADLINES,
    "retain.limits.deadlines.VECTOR_QUERY_MS": _DEADLINES,
    "retain.limits.deadlines.VECTOR_WRITE_MS": _DEADLINES,
    "retain.limits.deadlines.WRITER_MS": _DEADLINES,
    "retain.limits.deadlines.QUERY_EMBEDDING_MS": "tests/shell/test_deadlines.py::"
    "test_a_hanging_vector_index_degrades_a_recall_and_a_store_is_owed",
    "retain.limits.deadlines.RERANKING_MS": "tests/memory/semantic/test_degraded.py::"
    "test_a_recall_without_the_reranker_keeps_its_own_order",
    "retain.limits.listed_rows.LISTED_BYTES": "tests/limits/test_listed_rows.py::"
    "test_a_statement_takes_rows_up_to_its_bytes",
    "retain.limits.pages.PAGE_BYTES": "tests/limits/test_pages.py::"
    "test_a_page_ends_with_the_entry_that_passes_its_bytes",
    "retain.limits.room.REQUEST_BYTES": "tests/limits/test_room.py::test_what_is_larger_than_the_room_has_all_of_it",
    "retain.limits.room.ARRIVING_BYTES": "tests/limits/test_room.py::"
    "test_a_lease_releases_everything_also_after_an_error",
    "retain.memory.recall.sources.fresh.KEPT_LIMIT": "tests/memory/semantic/test_kept_signatures.py::"
    "test_what_is_kept_is_bounded_and_the_view_that_was_used_last_stays",
    "retain.limits.room.RECALLING_BYTES": "tests/agents/test_room_for_recalls.py::test_so_many_runs_recall_at_once",
    "retain.limits.room.RECALL_BYTES": "tests/agents/test_room_for_recalls.py::test_so_many_runs_recall_at_once",
    "retain.limits.room.SMALL_BYTES": "tests/limits/test_room.py::test_what_is_small_needs_no_room",
    "retain.limits.room.WAIT_S": "tests/limits/test_room.py::test_what_is_small_needs_no_room",
    "retain.limits.room.LOOK_S": "tests/limits/test_room.py::test_requests_wait_in_order_until_there_is_room",
    "retain.limits.room.MISSED_MS": "tests/limits/test_room.py::test_a_lost_request_does_not_hold_up_those_after_it",
    "retain.limits.room.LEASE_MS": "tests/limits/test_room.py::test_what_a_lost_request_held_is_free_after_its_lease",
    "retain.limits.room.REMEMBERED": "tests/limits/test_room.py::test_what_is_remembered_of_answers_is_bounded",
    "retain.limits.rates.PERIOD_S": "tests/test_rates.py::"
    "test_a_key_has_its_limit_in_each_period_and_no_other_key_uses_it",
    "retain.limits.vectorize.GRACE_MS": "tests/contracts/test_indexed.py::"
    "test_a_writer_slower_than_the_grace_time_removes_what_it_wrote_too_late",
    "retain.limits.vectorize.LAG_MS": "tests/memory/semantic/test_crowded_out.py::"
    "test_what_was_sent_is_compared_here_only_while_the_index_may_not_show_it",
    "retain.limits.vectorize.MAX_METADATA_INDEXES": "tests/vectorize/test_specification.py::"
    "test_a_specification_that_breaks_a_rule_is_refused",
    "retain.memory.episodes.MAX_PER_TENANT": "tests/memory/test_episodes.py::"
    "test_invariant_8_a_tenant_at_its_limit_is_refused",
    "retain.memory.recall.times.dates.MAX_DATES": "tests/memory/semantic/test_dates.py::"
    "test_several_dates_are_returned_in_order_each_once_up_to_a_limit",
    "retain.memory.recall.times.positions.MAX_POSITION": "tests/memory/semantic/test_named_conversations.py::"
    "test_a_position_is_one_of_conversations_alone",
    "retain.memory.recall.preparation.MAX_PARTS": "tests/memory/semantic/test_preparation.py::"
    "test_the_largest_content_is_cut_without_losing_anything",
    "retain.memory.recall.preparation.WINDOW_LIMIT": "tests/memory/semantic/test_preparation.py::"
    "test_only_a_short_turn_has_neighbours",
    "retain.memory.recall.query.MAX_EXACT_TERMS": "tests/memory/semantic/test_queries.py::"
    "test_a_query_is_parsed_in_one_pass",
    "retain.memory.recall.relevance.MIN_SCORE": "tests/memory/semantic/test_floor.py::"
    "test_a_question_about_nothing_remembered_brings_nothing",
    "retain.memory.working.MAX_RETRY_MS": "tests/memory/test_working.py::"
    "test_owed_copies_wait_longer_after_each_failure_up_to_five_minutes",
    "retain.memory.working.MAX_TOTAL_BYTES": "tests/memory/test_working.py::test_invariant_8_128_kib_fit_exactly",
    "retain.memory.writing.group.MAX_GROUP_CHARACTERS": "tests/memory/semantic/test_group_commit.py::"
    "test_a_group_is_bounded_by_its_characters",
    "retain.memory.writing.group.MAX_GROUP_CONTENTS": "tests/memory/semantic/test_group_commit.py::"
    "test_a_hundred_stores_at_once_are_all_stored_in_order_with_few_calls",
    "retain.models.embedders.multilingual.MAX_WORD_CHARACTERS": "tests/models/test_multilingual.py::"
    "test_a_word_is_made_of_its_longest_pieces",
    "retain.models.embedders.workers_ai.MAX_CHARACTERS_M3": "tests/models/test_workers_ai.py::"
    "test_a_call_of_bge_m3_stays_within_its_context",
    "retain.models.embedders.wordpiece.MAX_WORD_CHARACTERS": "tests/models/test_wordpiece.py::"
    "test_a_space_separates_words",
    "retain.models.prices.MAX_PRICE": "tests/models/test_prices.py::test_prices_are_bounded",
    "retain.models.prices.MAX_PRICED_MODELS": "tests/models/test_prices.py::test_prices_are_bounded",
    "retain.models.reranking.MAX_CHARACTERS": "tests/models/test_reranking.py::"
    "test_long_texts_are_cut_to_what_the_model_reads",
    "retain.outbox.MAX_REFUSALS": "tests/memory/test_outbox.py::"
    "test_an_entry_that_d1_refuses_is_set_aside_and_the_others_are_delivered",
    "retain.telemetry.exporter.MAX_QUEUED": "tests/telemetry/test_export.py::"
    "test_the_queue_is_bounded_and_sent_in_batches",
}
"""The test that tries a limit in its own setting."""

_TRIES = "bounds how often something is tried again, which no size of a request changes"
_TIME = "a formula of time that the deadlines of `tests/shell/test_deadlines.py` are made of"
_SLICES = "the size of a slice of work: the next slice has the rest"
_SEARCH = "bounds how much a recall looks at, which changes its order and not what is accepted"
_FETCH = "each request names its own limit; `tests/ports` tries one below, at and above it on every adapter"
_PLATFORM = "the platform's size of a whole store; what the brief warns of is tried in tests/admin/test_maintenance.py"
_SHOWN = "bounds what an error shows of a text"

REASONS: Mapping[str, str] = {
    "retain.admin.access._MAX_KEYS_BYTES": _FETCH,
    "retain.agent_memory.profile.MAX_PAGES": _SLICES,
    "retain.agents.calls.requests.MAX_DESCRIBED": "how much an instance shows of itself, newest first",
    "retain.agents.execution.asking.MAX_DROPPED_CHARACTERS": _SHOWN,
    "retain.agents.learning.own_words.MAX_BYTES": "what a run's user said beyond it teaches nothing; it is stored whole",
    "retain.agents.runs.result.MAX_RECHECK_MS": _TRIES,
    "retain.agents.tools.built_in.MAX_TRACEBACK_CHARACTERS": _SHOWN,
    "retain.contracts.stored.document_index.REMOVAL_LIMIT": _SLICES,
    "retain.contracts.stored.document_index.UPSERT_LIMIT": _SLICES,
    "retain.evaluation.runs.MAX_OBSERVED_BYTES": "what is kept of a case's calls, without their arguments beyond it",
    "retain.evaluation.runs.MAX_OUTPUT_BYTES": "what is kept of a case's answer; the run has all of it",
    "retain.evaluation.scoring.judge.MAX_OUTPUT_TOKENS": "asked of the judge's model",
    "retain.evaluation.scoring.scores._MAX_SHOWN": _SHOWN,
    "retain.gateway.entries.MAX_CHARACTERS": "of what an isolate keeps of KV, the oldest is dropped and read again",
    "retain.gateway.resolver._MAX_ANSWER_BYTES": _FETCH,
    "retain.ingest.inbox.KNOWN_LIMIT": "what is compared with what arrives: ten times what one request has",
    "retain.ingest.extractors.llm_extractor.MAX_CONFIDENCE": "a fact that a model extracted is never certain",
    "retain.ingest.extractors.llm_extractor.MAX_OUTPUT_TOKENS": "asked of the extractor's model",
    "retain.ingest.extractors.rule_extractor.MAX_OBJECT": "longer words are no object; the message is stored whole",
    "retain.ingest.languages.language.MAX_THING_WORDS": "more words are no object; the message is stored whole",
    "retain.json_schema._MAX_SHOWN": _SHOWN,
    "retain.ledgers.failures.MAX_NOTED": "the failures after them are in the log alone; `tests/ledgers/test_failures.py`",
    "retain.lifecycle.backups.restoring.MAX_PAGE_BYTES": "pages are written by a backup, within `export.PAGE_BYTES`",
    "retain.lifecycle.importing.MAX_TRIES": _TRIES,
    "retain.limits.deadlines.EMBEDDED_TEXT_MS": _TIME,
    "retain.limits.deadlines.EMBEDDING_MS": _TIME,
    "retain.limits.deadlines.OBJECT_BYTES_PER_MS": _TIME,
    "retain.limits.deadlines.RUN_CALL_MS": _TIME,
    "retain.limits.deadlines.VECTOR_ENTRY_MS": _TIME,
    "retain.limits.storage.MAX_DATABASE_BYTES": _PLATFORM,
    "retain.limits.vectorize.MAX_NAMESPACES": _PLATFORM,
    "retain.limits.vectorize.MAX_VECTORS": _PLATFORM,
    "retain.memory.indexer.DELETE_LIMIT": _SLICES,
    "retain.memory.indexer.MAX_TRIES": _TRIES,
    "retain.memory.indexer.UPSERT_LIMIT": _SLICES,
    "retain.limits.vector_filter.MAX_DECLARED": "of the setting VECTOR_FILTERS; `test_declared_filters.py` tries it",
    "retain.limits.vectorize.MAX_VALUE": "the largest 32-bit float; `tests/vectorize` tries it, and infinity",
    "retain.memory.records.claims.MAX_CLAIMS": "more statements of what is valid anyway change nothing",
    "retain.memory.recall.as_of.MAX_JUDGED": _SEARCH,
    "retain.memory.recall.candidates.EARLIER_LIMIT": _SEARCH,
    "retain.memory.recall.sources.fresh.FRESH_LIMIT": _SEARCH,
    "retain.memory.recall.candidates.EXACT_LIMIT": _SEARCH,
    "retain.memory.recall.sources.matching.HELD_LIMIT": _SEARCH,
    "retain.memory.recall.sources.matching.MATCHING_LIMIT": _SEARCH,
    "retain.memory.recall.evidence.MAX_TERMS": _SEARCH,
    "retain.memory.recall.candidates.STANDING_LIMIT": _SEARCH,
    "retain.memory.recall.sources.full_text.TERM_LIMIT": _SEARCH,
    "retain.memory.recall.sources.nearest.MAX_QUERIES": _SEARCH,
    "retain.memory.recall.sources.uttered_then.UTTERED_LIMIT": _SEARCH,
    "retain.models.endpoint.MAX_ANSWER_BYTES": _FETCH,
    "retain.models.endpoint.MAX_ERROR_BYTES": _FETCH,
    "retain.ports.MAX_RESPONSE_BYTES": _FETCH,
    "retain.ports.MAX_STREAM_BYTES": _FETCH,
    "retain.roles.grants.MAX_TENANTS": "how many tenants a list goes over for whoever holds a role in each of them",
    "retain.tenants.history.MAX_TRIES": _TRIES,
}
"""Why a limit has no size one below, at and above which a caller could send."""

ROWS: Mapping[str, str] = {
    "about 1,000 requests per second per object": "the platform's rate; an object's queue is bounded by its callers",
    "one alarm per object, at least once, six retries": "the platform's; `tests/agents/test_alarms.py`",
    "30 seconds of CPU per request": "the platform ends the request",
    "30 seconds of CPU per request, 15 minutes per scheduled brief": "the platform ends the request",
    "writes are seen after seconds": "`tests/memory/semantic/test_found.py`",
    "one write per second to the same key": "`tests/memory/test_working.py`",
    "changes are seen elsewhere after 60 seconds or more": "the platform's",
    "10,000 subrequests per invocation (50 free); a call of any binding is one": "`retain.limits.d1_calls` counts them",
    "six open connections per invocation": "the platform's: further calls wait",
    "100 MB per request body (more on some plans)": "`tests/e2e/test_bounds.py`, `retain.http.MAX_BODY_BYTES`",
    "10 MB of code, compressed (3 MB free), one second to start": "`tests/docs/test_deploy_dry_run.py` measures the upload",
    "5 KB per variable, 128 variables": "wrangler refuses more",
    "five schedules per account on the free plan, 250 on the paid": "`tests/shell/test_cron.py` counts them",
    "15 minutes per schedule, and no repetition of one that failed": "`tests/shell/test_cron.py`",
    "5 TB per object; a stream is written only if its length is known": "`tests/agents/test_attachments.py`",
    "agents that a tenant [defines itself](runtime-agents.md#limits)": "`tests/admin/test_tenant_definitions.py`",
    "`memories`": "`tests/shell/test_quotas.py`",
    "`runs_a_day`": "`tests/shell/test_quotas.py`",
    "`tokens_a_day`": "`tests/shell/test_quotas.py`",
}
"""Rows of docs/limits.md that name no constant, and where they are tried."""
