// Written by `python -m tests.sdk`; a test fails when it differs from what the server publishes.

/** Any JSON value. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** What came of a click; `answered_by` is the subject who answered, where somebody did. */
export interface ActionResult {
  readonly status: "accepted" | "already_answered" | "expired" | "closed" | "unknown" | "not_allowed" | "invalid" | "busy";
  readonly run_id: string | null;
  readonly interaction_id: string | null;
  readonly answered_by: string | null;
  readonly reason: string | null;
  readonly path: readonly (string | number)[];
}

export interface ActiveRunConflictDetail {
  readonly code: "active_run_conflict";
  readonly message: string;
  readonly run_id: string;
  readonly status: RunStatus;
}

/** The answer to a pending interaction; `value` must be there, but may be null. */
export interface Answer {
  readonly interaction_id: string;
  readonly value: JsonValue;
}

/** A run after a cancel; `id` equals `run_id`. */
export interface CancelledRun {
  readonly id: string;
  readonly run_id: string;
  readonly status: RunStatus;
}

/** One thing that is wrong with a request, without any value of it. */
export interface FieldError {
  /** Starts with `body`, `query` or `header`. */
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

export interface IdempotencyKeyReusedDetail {
  readonly code: "idempotency_key_reused";
  readonly message: string;
  readonly run_id: string;
}

export interface InteractionAlreadyResolvedDetail {
  readonly code: "interaction_already_resolved";
  readonly message: string;
  readonly outcome: "answered" | "approved" | "rejected" | "skipped" | "cancelled" | "expired";
}

export interface InteractionMismatchDetail {
  readonly code: "interaction_mismatch";
  readonly message: string;
  readonly interaction_id: string;
}

export interface InternalErrorDetail {
  readonly code: "internal_error";
  readonly message: string;
}

export interface InvalidRequestDetail {
  readonly code: "invalid_request";
  readonly message: string;
  readonly errors: readonly FieldError[];
}

export interface InvalidResponseDetail {
  readonly code: "invalid_response";
  readonly message: string;
  readonly reason: string;
  readonly path: readonly (string | number)[];
}

/** A public message: the user's text or a final answer. */
export interface Message {
  readonly id: string;
  readonly run_id: string;
  readonly role: "user" | "assistant";
  readonly content: string;
  readonly created_at: string;
}

export interface MethodNotAllowedDetail {
  readonly code: "method_not_allowed";
  readonly message: string;
}

/** A user message that starts a run. */
export interface NewRun {
  readonly input: string;
  readonly if_active?: "reject" | "cancel_waiting";
}

/** A session to create. Without `agent` it gets the default agent. */
export interface NewSession {
  readonly agent?: string | null;
  readonly title?: string | null;
  /** Yours, given back with the session; at most 16 KiB of JSON. */
  readonly resource?: Readonly<Record<string, JsonValue>>;
}

export interface NotAllowedDetail {
  readonly code: "not_allowed";
  readonly message: string;
}

export interface NotFoundDetail {
  readonly code: "not_found";
  readonly message: string;
}

/** One alternative of a choice. */
export interface OptionShown {
  readonly id: string;
  readonly label: string;
  readonly description: string | null;
  readonly recommended: boolean;
}

export interface PayloadTooLargeDetail {
  readonly code: "payload_too_large";
  readonly message: string;
}

/** One question of a form. */
export interface QuestionShown {
  readonly id: string;
  readonly prompt: string;
  readonly kind: "text" | "choice";
  readonly options: readonly OptionShown[];
  readonly multiple: boolean;
  readonly allow_custom: boolean;
  readonly required: boolean;
}

/** A run that was created, or goes on. */
export interface Receipt {
  readonly run_id: string;
  readonly status: RunStatus;
}

/** The new run for the message of a failed one. */
export interface RetryReceipt {
  readonly run_id: string;
  readonly status: RunStatus;
  readonly retried_from: string | null;
}

/** The work on one user message. */
export interface Run {
  readonly id: string;
  readonly session_id: string;
  readonly status: RunStatus;
  readonly event_seq: number;
  readonly model_steps: number;
  readonly retried_from: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface RunNotRetryableDetail {
  readonly code: "run_not_retryable";
  readonly message: string;
  readonly status: RunStatus;
}

export interface RunNotWaitingDetail {
  readonly code: "run_not_waiting";
  readonly message: string;
  readonly status: RunStatus;
}

/** Where a run stands. The first four are active, the others terminal. */
export type RunStatus = "queued" | "running" | "waiting_input" | "waiting_external" | "completed" | "failed" | "cancelled";

export interface RuntimeBusyDetail {
  readonly code: "runtime_busy";
  readonly message: string;
}

/** A conversation with one agent. */
export interface Session {
  readonly id: string;
  readonly agent_name: string;
  readonly subject_id: string;
  readonly tenant_id: string | null;
  readonly title: string | null;
  readonly resource: Readonly<Record<string, JsonValue>>;
  readonly created_at: string;
  readonly updated_at: string;
}

/** A session and its public messages, oldest first. */
export interface SessionWithMessages {
  readonly id: string;
  readonly agent_name: string;
  readonly subject_id: string;
  readonly tenant_id: string | null;
  readonly title: string | null;
  readonly resource: Readonly<Record<string, JsonValue>>;
  readonly created_at: string;
  readonly updated_at: string;
  readonly messages: readonly Message[];
}

export interface ShuttingDownDetail {
  readonly code: "shutting_down";
  readonly message: string;
}

/** The new title of a session; null or nothing clears it. */
export interface TitleChange {
  readonly title?: string | null;
}

/** The tool that an approval is about. */
export interface ToolShown {
  readonly name: string;
  readonly title: string;
  readonly effect: "read" | "write" | "destructive" | "external";
}

export interface UnauthenticatedDetail {
  readonly code: "unauthenticated";
  readonly message: string;
}

export interface UnsupportedMediaTypeDetail {
  readonly code: "unsupported_media_type";
  readonly message: string;
}

/** Tokens that the provider counted. */
export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
}

/** What an error of the API says, told apart by `code`. */
export type ApiErrorDetail =
  | ActiveRunConflictDetail
  | IdempotencyKeyReusedDetail
  | InteractionAlreadyResolvedDetail
  | InteractionMismatchDetail
  | InternalErrorDetail
  | InvalidRequestDetail
  | InvalidResponseDetail
  | MethodNotAllowedDetail
  | NotAllowedDetail
  | NotFoundDetail
  | PayloadTooLargeDetail
  | RunNotRetryableDetail
  | RunNotWaitingDetail
  | RuntimeBusyDetail
  | ShuttingDownDetail
  | UnauthenticatedDetail
  | UnsupportedMediaTypeDetail;

/** The codes of the API's own errors. */
export type ApiErrorCode =
  | "active_run_conflict"
  | "idempotency_key_reused"
  | "interaction_already_resolved"
  | "interaction_mismatch"
  | "internal_error"
  | "invalid_request"
  | "invalid_response"
  | "method_not_allowed"
  | "not_allowed"
  | "not_found"
  | "payload_too_large"
  | "run_not_retryable"
  | "run_not_waiting"
  | "runtime_busy"
  | "shutting_down"
  | "unauthenticated"
  | "unsupported_media_type";

/** `run.started` */
export interface RunStartedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "run.started";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: RunStarted;
}

/** `run.waiting_input` */
export interface RunWaitingInputEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "run.waiting_input";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: RunWaitingInput;
}

/** `run.waiting_external` */
export interface RunWaitingExternalEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "run.waiting_external";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: RunWaitingExternal;
}

/** `run.completed` */
export interface RunCompletedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "run.completed";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: RunCompleted;
}

/** `run.failed` */
export interface RunFailedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "run.failed";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: RunFailed;
}

/** `run.cancelled` */
export interface RunCancelledEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "run.cancelled";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: RunCancelled;
}

/** `model.started` */
export interface ModelStartedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "model.started";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: ModelStarted;
}

/** `message.delta` */
export interface MessageDeltaEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "message.delta";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: MessageDelta;
}

/** `message.reset` */
export interface MessageResetEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "message.reset";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: Nothing;
}

/** `model.retrying` */
export interface ModelRetryingEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "model.retrying";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: ModelRetrying;
}

/** `model.completed` */
export interface ModelCompletedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "model.completed";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: ModelCompleted;
}

/** `message.completed` */
export interface MessageCompletedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "message.completed";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: MessageCompleted;
}

/** `activity.updated` */
export interface ActivityUpdatedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "activity.updated";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: ActivityUpdated;
}

/** `tool.started` */
export interface ToolStartedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "tool.started";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: ToolStarted;
}

/** `tool.completed` */
export interface ToolCompletedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "tool.completed";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: ToolCompleted;
}

/** `tool.failed` */
export interface ToolFailedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "tool.failed";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: ToolFailed;
}

/** `interaction.requested` */
export interface InteractionRequestedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "interaction.requested";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: InteractionRequested;
}

/** `interaction.resolved` */
export interface InteractionResolvedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "interaction.resolved";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: InteractionResolved;
}

/** `external_task.started` */
export interface ExternalTaskStartedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "external_task.started";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: ExternalTaskShown;
}

/** `external_task.progress` */
export interface ExternalTaskProgressEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "external_task.progress";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: ExternalTaskShown;
}

/** `external_task.completed` */
export interface ExternalTaskCompletedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "external_task.completed";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: ExternalTaskEnded;
}

/** `external_task.failed` */
export interface ExternalTaskFailedEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "external_task.failed";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: ExternalTaskEnded;
}

/** `external_task.cancelled` */
export interface ExternalTaskCancelledEvent {
  readonly v: 1;
  readonly id: string;
  readonly seq: number;
  readonly type: "external_task.cancelled";
  readonly session_id: string;
  readonly run_id: string;
  readonly created_at: string;
  readonly data: ExternalTaskCancelled;
}

/** A progress row changed; rows are told apart by `id`. */
export interface ActivityUpdated {
  readonly id: string;
  readonly step: number;
  readonly kind: "progress";
  readonly message: string;
  readonly status: "running" | "completed" | "failed";
  readonly public?: JsonValue;
}

/** Host work was cancelled with its run. */
export interface ExternalTaskCancelled {
  readonly task_id: string;
  readonly call_id: string;
  readonly message: string;
}

/** Host work ended. */
export interface ExternalTaskEnded {
  readonly task_id: string;
  readonly call_id: string;
  readonly message?: string;
  readonly public?: JsonValue;
}

/** Host work started or progressed. */
export interface ExternalTaskShown {
  readonly task_id: string;
  readonly call_id: string;
  readonly message: string;
  readonly public?: JsonValue;
}

/** A question or approval waits for the user. */
export interface InteractionRequested {
  readonly id: string;
  readonly kind: "text" | "choice" | "form" | "approval" | "data";
  readonly prompt: string;
  readonly tool_call_id: string;
  readonly options: readonly OptionShown[];
  readonly questions: readonly QuestionShown[];
  readonly multiple: boolean;
  readonly allow_custom: boolean;
  readonly allow_skip: boolean;
  readonly skip_label: string | null;
  readonly tool?: ToolShown;
  readonly schema?: Readonly<Record<string, JsonValue>>;
  readonly expires_at?: string;
}

/** A question or approval is over; the answer itself is never in an event. */
export interface InteractionResolved {
  readonly interaction_id: string;
  readonly kind: "text" | "choice" | "form" | "approval" | "data";
  readonly outcome: "answered" | "approved" | "rejected" | "skipped" | "cancelled" | "expired";
}

/** The final text; equals the deltas since the last reset. */
export interface MessageCompleted {
  readonly content: string;
}

/** More assistant text; never empty. */
export interface MessageDelta {
  readonly delta: string;
}

/** The step's reply is stored: calls to handle (`tools`) or the final text (`final`). */
export interface ModelCompleted {
  readonly step: number;
  readonly outcome: "tools" | "final";
  readonly finish_reason: "stop" | "tool_calls" | "length";
  readonly provider_request_id: string | null;
  readonly usage: Usage | null;
}

/** Attempt failed; the same step is tried again after `delay_seconds`. */
export interface ModelRetrying {
  readonly step: number;
  readonly retry: number;
  readonly max_retries: number;
  readonly delay_seconds: number;
  readonly reason: string;
  readonly tool_name?: string;
}

/** A model step begins. */
export interface ModelStarted {
  readonly step: number;
}

/** A payload without fields. */
export type Nothing = Readonly<Record<string, never>>;

/** The run was cancelled by somebody. */
export interface RunCancelled {
  readonly status: "cancelled";
}

/** The run ended with a final message. `usage` sums the run's steps, null when none had one. */
export interface RunCompleted {
  readonly status: "completed";
  readonly usage: Usage | null;
}

/** The run ended without an answer. `error` is public text; `retryable` allows a retry. */
export interface RunFailed {
  readonly status: "failed";
  readonly code: string;
  readonly error: string;
  readonly retryable: boolean;
}

/** The run was claimed for the first time; always seq 1. */
export interface RunStarted {
  readonly status: "running";
}

/** The run pauses for host work; directly after `external_task.started`. */
export interface RunWaitingExternal {
  readonly status: "waiting_external";
}

/** The run pauses for an answer; `interaction.requested` follows directly. */
export interface RunWaitingInput {
  readonly status: "waiting_input";
}

/** A call settled successfully, or was skipped as a repetition (`deduplicated`). */
export interface ToolCompleted {
  readonly call_id: string;
  readonly name: string;
  readonly title: string;
  readonly effect: "read" | "write" | "destructive" | "external";
  readonly message?: string;
  readonly public?: JsonValue;
  readonly deduplicated?: true;
}

/** A call settled with an error; `message` is public text. */
export interface ToolFailed {
  readonly call_id: string;
  readonly name: string;
  readonly title: string;
  readonly effect: "read" | "write" | "destructive" | "external";
  readonly code: string;
  readonly message: string;
  readonly public?: JsonValue;
}

/** A tool begins to execute. */
export interface ToolStarted {
  readonly call_id: string;
  readonly name: string;
  readonly title: string;
  readonly effect: "read" | "write" | "destructive" | "external";
}

/** One event of a run, told apart by `type`. */
export type RungentEvent =
  | RunStartedEvent
  | RunWaitingInputEvent
  | RunWaitingExternalEvent
  | RunCompletedEvent
  | RunFailedEvent
  | RunCancelledEvent
  | ModelStartedEvent
  | MessageDeltaEvent
  | MessageResetEvent
  | ModelRetryingEvent
  | ModelCompletedEvent
  | MessageCompletedEvent
  | ActivityUpdatedEvent
  | ToolStartedEvent
  | ToolCompletedEvent
  | ToolFailedEvent
  | InteractionRequestedEvent
  | InteractionResolvedEvent
  | ExternalTaskStartedEvent
  | ExternalTaskProgressEvent
  | ExternalTaskCompletedEvent
  | ExternalTaskFailedEvent
  | ExternalTaskCancelledEvent;

/** Every event type of this version. */
export const EVENT_TYPES = [
  "run.started",
  "run.waiting_input",
  "run.waiting_external",
  "run.completed",
  "run.failed",
  "run.cancelled",
  "model.started",
  "message.delta",
  "message.reset",
  "model.retrying",
  "model.completed",
  "message.completed",
  "activity.updated",
  "tool.started",
  "tool.completed",
  "tool.failed",
  "interaction.requested",
  "interaction.resolved",
  "external_task.started",
  "external_task.progress",
  "external_task.completed",
  "external_task.failed",
  "external_task.cancelled",
] as const;
