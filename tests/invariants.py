"""What the product promises, and the tests that prove each promise.

`test_invariants.py` fails when a promise has no test or names one that does not exist.
Tests are found by name, wherever they lie.
"""

from __future__ import annotations

from collections.abc import Mapping

INVARIANTS: Mapping[str, tuple[str, ...]] = {
    "An event is stored before anybody sees it, together with the state it describes.": (
        "test_nothing_is_delivered_before_it_is_stored",
        "test_live_and_replayed_logs_are_the_same",
    ),
    "Events of a run are numbered from 1 without a gap, and exactly one terminal event ends them.": (
        "test_every_random_run_keeps_every_promise",
        "test_every_run_of_a_storm_ends_once_and_in_order",
        "test_events_replay_without_a_gap_after_the_server_was_killed",
    ),
    "A reader that cuts its stream anywhere and comes back gets exactly the log.": (
        "test_cut_anywhere_and_reconnected_the_stream_is_the_log",
        "test_cut_anywhere_and_across_restarts_the_stream_is_the_log",
        "test_a_reader_may_leave_the_proxy_at_any_byte_and_come_back",
        "test_a_reader_may_leave_and_come_back_at_any_place",
    ),
    "A slow or stuck reader holds up neither the run nor other readers.": (
        "test_a_stuck_reader_holds_up_nobody",
        "test_a_reader_that_stops_reading_is_cut_after_the_write_timeout",
        "test_what_is_made_for_a_reader_at_once_is_bounded",
    ),
    "An idle reader costs no query, and its connection survives proxies.": (
        "test_waiting_again_and_again_costs_no_look",
        "test_keep_alives_hold_an_idle_stream_open_beyond_the_proxys_timeout",
    ),
    "A part of a run that ends or pauses is one log line, which holds nothing private.": (
        "test_each_part_of_a_run_that_pauses_is_a_line",
        "test_json_lines_say_what_became_of_runs_and_nothing_private",
    ),
    "Every call gets exactly one tool message, in call order, before the next model step.": (
        "test_every_random_run_keeps_every_promise",
        "test_parallel_reads_overlap_and_are_answered_in_call_order",
    ),
    "A call that needs approval is never executed without it.": (
        "test_every_random_run_keeps_every_promise",
        "test_a_tool_that_needs_approval_is_never_executed_without_it",
    ),
    "A write that a lost worker had begun is never silently executed again.": (
        "test_a_write_of_a_lost_worker_is_never_executed_again",
        "test_a_call_of_a_lost_worker_is_repeated_only_if_that_is_harmless",
    ),
    "A write that succeeded is not executed again in its run; a failed one may be.": (
        "test_a_write_that_succeeded_is_not_executed_again_in_the_run",
        "test_a_failed_first_attempt_does_not_suppress_the_second",
    ),
    "A worker that lost its lease writes nothing more.": (
        "test_a_drive_that_is_lost_at_any_commit_writes_nothing_more",
        "test_a_drive_that_lost_its_lease_stores_nothing_even_if_nobody_took_it_over",
    ),
    "A session has at most one active run, also when two are created at the same instant.": (
        "test_two_creations_at_the_same_instant_make_one_run",
        "test_of_rival_creators_one_wins_and_the_others_learn_who",
    ),
    "A repeated request under one idempotency key gets the run of the first.": (
        "test_the_same_key_and_request_get_the_same_run",
        "test_one_key_at_the_same_instant_makes_one_run",
    ),
    "A cancelled caller changed everything or nothing.": (
        "test_a_creator_that_is_cancelled_anywhere_created_the_run_or_left_no_trace",
        "test_a_canceller_that_is_cancelled_anywhere_ended_the_run_or_changed_nothing",
    ),
    "A run that is cancelled in any phase ends once, frees its session and executes no further write.": (
        "test_a_run_is_cancelled_in_any_phase",
    ),
    "Stopping a process cancels no run; another worker goes on.": (
        "test_a_run_goes_on_with_another_worker_after_a_stop",
        "test_cancelling_the_nursery_is_a_stop_without_grace",
        "test_a_stop_with_many_streams_and_runs_loses_nothing",
    ),
    "Provider retries are bounded, cost no step, and reset partial text first.": (
        "test_a_failed_attempt_is_repeated_in_the_same_step",
        "test_the_last_reason_names_the_failure_when_the_budget_is_used_up",
        "test_transient_faults_are_retried_without_a_fault_of_ours",
    ),
    "A partial or malformed call is never executed.": (
        "test_a_call_cut_by_the_length_limit_is_never_executed",
        "test_broken_arguments_are_asked_for_again_and_never_executed",
    ),
    "A silent model is reported after three seconds and then every five.": (
        "test_ticks_come_after_three_seconds_and_then_every_five",
    ),
    "Exception text, reasoning, arguments and private data reach no event, body or model.": (
        "test_private_things_stay_private",
    ),
    "Nothing of the request that created a run is visible in the run.": (
        "test_the_context_variables_of_the_creator_are_not_visible_in_the_run",
    ),
    "Bad input of any shape is refused with a documented status and changes nothing.": (
        "test_bad_bodies_are_refused_and_change_nothing",
        "test_a_body_above_the_limit_is_read_and_refused",
        "test_without_identity_every_route_refuses",
        "test_no_request_made_from_the_description_breaks_it",
        "test_large_bodies_are_refused_and_change_nothing",
    ),
    "Refusals of the host's own pass through unchanged.": (
        "test_errors_of_the_framework_pass_unchanged",
    ),
    "Things of another owner are answered like things that do not exist.": (
        "test_foreign_and_unknown_sessions_look_the_same",
        "test_a_foreign_id_and_an_unknown_id_cannot_be_told_apart",
        "test_foreign_and_unknown_runs_look_alike_and_states_are_told",
    ),
    "A question or approval is answered once; the frozen call runs once, exactly as approved.": (
        "test_every_random_pausing_run_keeps_every_promise",
    ),
    "A crash at any write or any await loses nothing and does nothing twice.": (
        "test_a_run_that_is_hit_at_any_write_keeps_every_promise",
        "test_a_run_whose_worker_crashes_at_any_await_keeps_every_promise",
        "test_workers_that_are_killed_over_postgres_lose_nothing_and_do_nothing_twice",
    ),
    "What a worker brings after its lease lapsed is refused.": (
        "test_the_late_result_of_a_worker_that_stood_still_is_refused",
    ),
    "A cancel from any process stops the tool within a second.": (
        "test_a_cancel_in_another_worker_stops_the_tool_within_a_second",
    ),
    "An external agent that can ask executes no call without the consent it needs, and one per consent.": (
        "test_a_client_that_can_ask_is_asked_before_anything_is_done",
        "test_whoever_does_not_approve_declined",
        "test_an_answer_counts_once",
        "test_no_changed_byte_passes",
    ),
    "A notification of an external agent executes nothing.": (
        "test_a_notification_executes_nothing",
        "test_no_notification_executes_anything",
    ),
    "What the official suites expect of the tools that external agents call is what they get.": (
        "test_the_stable_suite_finds_nothing_unexpected",
        "test_the_newest_suite_finds_nothing_unexpected",
        "test_the_tasks_extension_is_what_the_newest_suite_expects",
    ),
    "An external task is completed exactly once.": (
        "test_a_completion_counts_once",
        "test_of_completions_at_the_same_instant_one_counts",
    ),
    "A frontend that replays a log, cut and repeated anyhow, shows what it showed live.": (
        "test_any_cut_and_repetition_gives_the_same_state",
        "test_the_end_settles_every_row",
    ),
    "A page shows a run the same after a reload, a lost network, a restart, and in two tabs.": (
        "test_a_reload_in_the_middle_of_a_run_goes_on_where_it_is",
        "test_a_reload_keeps_the_question_that_waits",
        "test_what_happens_offline_is_shown_afterwards",
        "test_a_server_that_was_away_is_found_again",
        "test_two_tabs_show_one_run_and_one_answer",
    ),
    "Two clicks have one effect.": (
        "test_two_clicks_on_send_make_one_run",
        "test_an_approved_call_is_carried_out_once",
        "test_a_form_is_one_card_with_one_answer",
        "test_a_failed_run_is_tried_again_once_by_two_clicks",
    ),
}
