/**
 * What can go wrong.
 *
 * ```text
 * RungentError
 * ├── RungentApiError     the server refused      .status .code .detail .retryAfter
 * ├── RungentStreamError  a stream was lost        .runId .lastSeq .cause
 * └── RungentAnswerError  an answer breaks a rule  .reason .path
 * ```
 */

import type { ApiErrorCode } from "./types.js";

/** The root of the errors that this package makes. */
export class RungentError extends Error {
  override readonly name: string = "RungentError";
}

/** The detail of an error body: `code`, `message`, and the fields of that code. */
export interface ErrorDetail {
  readonly code: string;
  readonly message: string;
  readonly [key: string]: unknown;
}

/** The server answered with an HTTP error; it changed nothing. */
export class RungentApiError extends RungentError {
  override readonly name = "RungentApiError";
  /** The HTTP status. */
  readonly status: number;
  /** A code of the API, or `http_error` when something in between answered. */
  readonly code: ApiErrorCode | "http_error" | (string & {});
  /** The body's `detail`; with `http_error` only code and message. */
  readonly detail: ErrorDetail;
  /** Seconds after which trying again makes sense, if the server said so. */
  readonly retryAfter: number | null;

  constructor(status: number, detail: ErrorDetail, retryAfter: number | null = null) {
    super(detail.message);
    this.status = status;
    this.code = detail.code;
    this.detail = detail;
    this.retryAfter = retryAfter;
  }
}

/** An event stream was lost and could not be reopened. The run itself goes on. */
export class RungentStreamError extends RungentError {
  override readonly name = "RungentStreamError";
  readonly runId: string;
  /** The last event that was delivered: where to go on from. */
  readonly lastSeq: number;

  constructor(runId: string, lastSeq: number, cause: unknown) {
    super(`the event stream was lost after event ${lastSeq}`, { cause });
    this.runId = runId;
    this.lastSeq = lastSeq;
  }
}

/** Why an answer is refused; the server gives the same reasons. */
export type AnswerReason =
  | "type_mismatch"
  | "empty_answer"
  | "too_long"
  | "skip_not_allowed"
  | "skip_with_answer"
  | "duplicate_option"
  | "unknown_option"
  | "custom_not_allowed"
  | "too_many_answers"
  | "unknown_question"
  | "missing_answer"
  | "invalid_decision"
  | "unknown_field"
  | "invalid_value";

/** An answer breaks a rule of its question; nothing was sent. */
export class RungentAnswerError extends RungentError {
  override readonly name = "RungentAnswerError";
  readonly reason: AnswerReason;
  /** Keys and indexes to the offending part; empty for the value itself. */
  readonly path: readonly (string | number)[];

  constructor(reason: AnswerReason, message: string, path: readonly (string | number)[]) {
    super(message);
    this.reason = reason;
    this.path = path;
  }
}

/** The error of a response that is not ok. */
export async function apiError(response: Response): Promise<RungentApiError> {
  const seconds = Number(response.headers.get("Retry-After") ?? Number.NaN);
  const body: unknown = await response.json().catch(() => null);
  const detail = (body as { detail?: unknown } | null)?.detail;
  return new RungentApiError(
    response.status,
    isDetail(detail) ? detail : { code: "http_error", message: described(response, detail) },
    Number.isFinite(seconds) ? seconds : null,
  );
}

function isDetail(detail: unknown): detail is ErrorDetail {
  if (typeof detail !== "object" || detail === null) return false;
  const { code, message } = detail as Record<string, unknown>;
  return typeof code === "string" && typeof message === "string";
}

function described(response: Response, detail: unknown): string {
  return typeof detail === "string" ? detail : `HTTP ${response.status}`;
}
