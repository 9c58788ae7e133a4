/** What the page says about states and rows. Pure. */

import type { ActivityRow, RungentState } from "@rungent/sdk";

const REASONS: Readonly<Record<string, string>> = {
  timeout: "no answer in time",
  network: "the model cannot be reached",
  rate_limit: "too many requests",
  server_error: "the model's server failed",
  provider_error: "the model's server failed",
  stream_incomplete: "the answer broke off",
  invalid_response: "the answer could not be read",
  empty_completion: "the answer was empty",
  invalid_tool_arguments: "a call could not be read",
  worker_lost: "another worker took over",
};

const OUTCOMES: Readonly<Record<string, string>> = {
  answered: "answered",
  approved: "approved",
  rejected: "rejected",
  skipped: "skipped",
  cancelled: "dropped",
  expired: "expired",
};

const ROW_STATUS: Readonly<Record<ActivityRow["status"], string>> = {
  running: "in progress",
  completed: "done",
  failed: "failed",
  cancelled: "cancelled",
};

/** A row of the timeline: what it is, and how it stands. */
export interface Described {
  readonly label: string;
  readonly detail: string;
  readonly status: string;
}

export function describeRow(row: ActivityRow): Described {
  const status = ROW_STATUS[row.status];
  switch (row.kind) {
    case "model": {
      const label = `Model step ${row.step}`;
      if (row.retry === undefined) return { label, detail: "", status };
      const reason = REASONS[row.retryReason ?? ""] ?? row.retryReason;
      return { label, detail: `retry ${row.retry}/${row.maxRetries}: ${reason}`, status };
    }
    case "progress": {
      const seconds = member(row.public, "elapsed_seconds");
      const detail = row.status === "running" && seconds !== undefined ? `${seconds} s` : "";
      return { label: row.message, detail, status };
    }
    case "tool": {
      const skipped = row.deduplicated ? "skipped, it was done before" : "";
      return { label: row.title, detail: row.message ?? skipped, status };
    }
    case "interaction": {
      const label = row.interactionKind === "approval" ? "Approval" : "Question";
      const outcome = row.outcome === undefined ? "" : (OUTCOMES[row.outcome] ?? row.outcome);
      return { label, detail: outcome || "waits for you", status };
    }
    case "external":
      return { label: "In the background", detail: row.message ?? "", status };
  }
}

/** One line about a run, for the status line. */
export function describeRun(state: RungentState): string {
  switch (state.status) {
    case "idle":
      return "";
    case "running": {
      const row = state.activities.findLast(({ status }) => status === "running");
      if (state.text !== "") return "Answering";
      return row === undefined ? "Working" : headline(row);
    }
    case "waiting_input":
      return state.interaction?.kind === "approval"
        ? "Waiting for your approval"
        : "Waiting for your answer";
    case "waiting_external": {
      const row = state.activities.findLast(({ kind }) => kind === "external");
      return row === undefined ? "Working in the background" : describeRow(row).detail;
    }
    case "completed":
      return "Done";
    case "failed":
      return "Failed";
    case "cancelled":
      return "Stopped";
  }
}

function headline(row: ActivityRow): string {
  const { label, detail } = describeRow(row);
  if (row.kind === "model") return row.retry === undefined ? "Thinking" : `Thinking, ${detail}`;
  return label;
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null
    ? (value as Record<string, unknown>)[name]
    : undefined;
}
