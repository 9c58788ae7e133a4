/** What a frontend shows of a run: the state that events add up to. */

import type {
  ExternalTaskShown,
  InteractionRequested,
  InteractionResolved,
  JsonValue,
  ToolStarted,
  Usage,
} from "./types.js";

/** `idle` until the run began. */
export type RunViewStatus =
  | "idle"
  | "running"
  | "waiting_input"
  | "waiting_external"
  | "completed"
  | "failed"
  | "cancelled";

/** Where a row of the timeline stands. Progress rows are never `cancelled`. */
export type RowStatus = "running" | "completed" | "failed" | "cancelled";

/** A kind of question; later servers may ask others, so have a default. */
export type InteractionKind = InteractionRequested["kind"] | (string & {});

/** The pending question or approval, as `interaction.requested` announced it. */
export type Interaction = Omit<InteractionRequested, "kind"> & { readonly kind: InteractionKind };

/** One model step; `retry` of `maxRetries` while it is tried again. */
export interface ModelRow {
  readonly kind: "model";
  readonly id: string;
  readonly status: RowStatus;
  readonly step: number;
  readonly retry?: number;
  readonly maxRetries?: number;
  readonly retryReason?: string;
}

/** A progress report; the latest one with its id. */
export interface ProgressRow {
  readonly kind: "progress";
  readonly id: string;
  readonly status: "running" | "completed" | "failed";
  readonly step: number;
  readonly message: string;
  readonly public?: JsonValue;
}

/** A tool call. */
export interface ToolRow {
  readonly kind: "tool";
  readonly id: string;
  readonly status: RowStatus;
  readonly name: string;
  readonly title: string;
  readonly effect: ToolStarted["effect"];
  readonly message?: string;
  readonly public?: JsonValue;
  readonly code?: string;
  readonly deduplicated?: true;
}

/** A question or approval. */
export interface InteractionRow {
  readonly kind: "interaction";
  readonly id: string;
  readonly status: RowStatus;
  readonly interactionKind: InteractionKind;
  readonly prompt: string;
  readonly outcome?: InteractionResolved["outcome"] | (string & {});
}

/** Work that the application finishes later. */
export interface ExternalRow {
  readonly kind: "external";
  readonly id: string;
  readonly status: RowStatus;
  readonly callId: string;
  readonly message?: ExternalTaskShown["message"];
  readonly public?: JsonValue;
}

export type ActivityRow = ModelRow | ProgressRow | ToolRow | InteractionRow | ExternalRow;

/** The state of one run. Plain data: compare it by identity, store it as JSON. */
export interface RungentState {
  readonly runId: string | null;
  /** The last event that counted: the cursor to follow from. */
  readonly lastSeq: number | null;
  readonly status: RunViewStatus;
  /** Assistant text that is still being written. */
  readonly text: string;
  /** The final text. */
  readonly content: string | null;
  /** The timeline, in order of appearance, one row per thing. */
  readonly activities: readonly ActivityRow[];
  readonly interaction: Interaction | null;
  readonly error: string | null;
  readonly errorCode: string | null;
  readonly retryable: boolean | null;
  readonly usage: Usage | null;
}

/** Nothing happened yet. */
export const initialRungentState: RungentState = Object.freeze<RungentState>({
  runId: null,
  lastSeq: null,
  status: "idle",
  text: "",
  content: null,
  activities: Object.freeze([]),
  interaction: null,
  error: null,
  errorCode: null,
  retryable: null,
  usage: null,
});

/** Whether the run is over: nothing follows. */
export function isTerminal(status: string): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}
