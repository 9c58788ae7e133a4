/**
 * The sum of a run's events. Pure: the same events give the same state, live or replayed.
 *
 * The same rules are written in Python, and both are tested on the same logs.
 */

import {
  type ActivityRow,
  initialRungentState,
  type RowStatus,
  type RungentState,
} from "../state.js";
import type { RungentEvent, ToolCompleted, ToolFailed, ToolStarted } from "../types.js";
import { find, put, settle } from "./rows.js";

type Change = Partial<RungentState>;

/**
 * The state after an event.
 *
 * An event of another run starts anew. An event that counted already changes nothing: the same
 * object comes back. Of an unknown type only the number counts.
 */
export function reduceRungentEvent(state: RungentState, event: RungentEvent): RungentState {
  const known = event.run_id === state.runId;
  if (known && state.lastSeq !== null && event.seq <= state.lastSeq) return state;
  const base = known ? state : initialRungentState;
  return { ...base, ...changed(base, event), runId: event.run_id, lastSeq: event.seq };
}

/** The state after the transport failed: the view of the run is over, the run may go on. */
export function failRungentState(state: RungentState, message: string): RungentState {
  const activities = settle(state.activities, "failed");
  return { ...state, status: "failed", error: message, activities };
}

function changed(state: RungentState, event: RungentEvent): Change {
  switch (event.type) {
    case "run.started":
    case "run.waiting_input":
    case "run.waiting_external":
      return { status: event.data.status };
    case "run.completed":
      return { ...ended(state, "completed"), usage: event.data.usage };
    case "run.failed": {
      const { error, code, retryable } = event.data;
      return { ...ended(state, "failed"), error, errorCode: code, retryable };
    }
    case "run.cancelled":
      return ended(state, "cancelled");
    case "message.delta":
      return { text: state.text + event.data.delta };
    case "message.reset":
      return { text: "" };
    case "message.completed":
      return { content: event.data.content, text: "" };
    case "model.started":
    case "model.retrying":
    case "model.completed":
      return model(state, event);
    case "activity.updated": {
      const { id, step, message, status } = event.data;
      const row = { kind: "progress", id, status, step, message } as const;
      return rows(state, { ...row, ...picked(event.data, ["public"]) });
    }
    case "tool.started":
      return tool(state, "running", event.data);
    case "tool.completed":
      return tool(state, "completed", event.data);
    case "tool.failed":
      return tool(state, "failed", event.data);
    case "interaction.requested":
    case "interaction.resolved":
      return interaction(state, event);
    case "external_task.started":
    case "external_task.progress":
    case "external_task.completed":
    case "external_task.failed":
    case "external_task.cancelled":
      return external(state, event);
    default: {
      // A type that is in the schema has a case above; one of a later server has none.
      const unknown: never = event;
      void unknown;
      return {};
    }
  }
}

type Of<Type extends string> = Extract<RungentEvent, { type: Type }>;

function model(
  state: RungentState,
  event: Of<"model.started" | "model.retrying" | "model.completed">,
): Change {
  const { step } = event.data;
  const id = `model:${step}`;
  const known = find(state.activities, "model", id) ?? ({ kind: "model", id, step } as const);
  switch (event.type) {
    case "model.started":
      return { ...rows(state, { kind: "model", id, status: "running", step }), text: "" };
    case "model.completed":
      return rows(state, { ...known, status: "completed" });
    case "model.retrying": {
      const { retry, max_retries: maxRetries, reason: retryReason } = event.data;
      return rows(state, { ...known, status: "running", retry, maxRetries, retryReason });
    }
  }
}

function tool(
  state: RungentState,
  status: RowStatus,
  data: ToolStarted | ToolCompleted | ToolFailed,
): Change {
  const { call_id: id, name, title, effect } = data;
  const more = picked(data as ToolCompleted & ToolFailed, [
    "message",
    "public",
    "code",
    "deduplicated",
  ]);
  return rows(state, { kind: "tool", id, status, name, title, effect, ...more });
}

function interaction(
  state: RungentState,
  event: Of<"interaction.requested" | "interaction.resolved">,
): Change {
  if (event.type === "interaction.requested") {
    const { id, kind: interactionKind, prompt } = event.data;
    const row = { kind: "interaction", id, status: "running", interactionKind, prompt } as const;
    return { ...rows(state, row), interaction: event.data };
  }
  const { interaction_id: id, kind: interactionKind, outcome } = event.data;
  const known = find(state.activities, "interaction", id);
  const status = outcome === "cancelled" || outcome === "expired" ? "cancelled" : "completed";
  const prompt = known?.prompt ?? "";
  const row = { kind: "interaction", id, status, interactionKind, prompt, outcome } as const;
  return { ...rows(state, row), interaction: null, status: "running" };
}

type Task = "started" | "progress" | "completed" | "failed" | "cancelled";

const TASK_STATUS: Readonly<Record<`external_task.${Task}`, RowStatus>> = {
  "external_task.started": "running",
  "external_task.progress": "running",
  "external_task.completed": "completed",
  "external_task.failed": "failed",
  "external_task.cancelled": "cancelled",
};

function external(state: RungentState, event: Of<`external_task.${Task}`>): Change {
  const { task_id: id, call_id: callId } = event.data;
  const status = TASK_STATUS[event.type];
  const known = find(state.activities, "external", id);
  const shown = picked(event.data as Of<"external_task.started">["data"], ["message", "public"]);
  const change = rows(state, { ...known, kind: "external", id, status, callId, ...shown });
  return status === "running" ? change : { ...change, status: "running" };
}

function ended(state: RungentState, status: Exclude<RowStatus, "running">): Change {
  return { status, interaction: null, activities: settle(state.activities, status) };
}

function rows(
  state: RungentState,
  row: ActivityRow,
): { readonly activities: readonly ActivityRow[] } {
  return { activities: put(state.activities, row) };
}

/** The keys that are there. */
function picked<T extends object, K extends keyof T>(data: T, keys: readonly K[]): Pick<T, K> {
  const found = keys.filter((key) => data[key] !== undefined).map((key) => [key, data[key]]);
  return Object.fromEntries(found) as Pick<T, K>;
}
