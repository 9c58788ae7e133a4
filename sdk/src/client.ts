/** The HTTP client: one method for each thing the API can do. */

import { Follower, type FollowOptions } from "./follow.js";
import { type Outgoing, Requests, type RungentClientOptions } from "./requests.js";
import type {
  CancelledRun,
  JsonValue,
  Receipt,
  RetryReceipt,
  Run,
  RungentEvent,
  Session,
  SessionWithMessages,
} from "./types.js";

/** One page of a list; `next` is the cursor of the next page, or null. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

export interface PageOptions {
  /** 1 to 500, 100 by default. */
  readonly limit?: number | undefined;
  readonly cursor?: string | null | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface CreateRunOptions {
  /** The same key and request give the same run, however often they are sent. */
  readonly idempotencyKey?: string | undefined;
  /** What to do about a run that waits for an answer; other active runs always refuse. */
  readonly ifActive?: "reject" | "cancel_waiting" | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface RespondOptions extends Partial<FollowOptions> {
  /** Where to follow from; by default after the last event this client delivered of the run. */
  readonly afterSeq?: number | undefined;
}

interface Aborting {
  readonly signal?: AbortSignal | undefined;
}

/**
 * A client of one mounted API.
 *
 * Every method throws RungentApiError when the server refuses, which then changed nothing, and
 * whatever `fetch` throws. Aborting a signal ends the client's side only: the run goes on.
 */
export class RungentClient {
  readonly #requests: Requests;
  // The last event delivered of each run.
  readonly #delivered = new Map<string, number>();

  constructor(options: RungentClientOptions) {
    this.#requests = new Requests(options);
  }

  /** A new conversation. `resource` is yours and comes back with the session. */
  createSession(
    session: {
      readonly agent?: string;
      readonly title?: string;
      readonly resource?: { readonly [key: string]: JsonValue };
    } & Aborting = {},
  ): Promise<Session> {
    const { signal, ...body } = session;
    return this.#requests.json("/sessions", { method: "POST", body, signal });
  }

  /** A session with its messages, oldest first. */
  getSession(sessionId: string, { signal }: Aborting = {}): Promise<SessionWithMessages> {
    return this.#requests.json(at("sessions", sessionId), { signal });
  }

  /** Names a session; null takes the name away. */
  setSessionTitle(
    sessionId: string,
    title: string | null,
    { signal }: Aborting = {},
  ): Promise<Session> {
    const body = { title };
    return this.#requests.json(at("sessions", sessionId), { method: "PATCH", body, signal });
  }

  /** Own sessions, last used first. */
  listSessions(options: PageOptions = {}): Promise<Page<Session>> {
    return this.#list("/sessions", options);
  }

  /** The runs of a session, oldest first. */
  listRuns(sessionId: string, options: PageOptions = {}): Promise<Page<Run>> {
    return this.#list(at("sessions", sessionId, "runs"), options);
  }

  /** Starts a run for a user message; it goes on by itself. */
  createRun(sessionId: string, input: string, options: CreateRunOptions = {}): Promise<Receipt> {
    const { idempotencyKey, ifActive, signal } = options;
    return this.#requests.json(at("sessions", sessionId, "runs"), {
      method: "POST",
      body: { input, ...(ifActive === undefined ? {} : { if_active: ifActive }) },
      headers: keyed(idempotencyKey),
      signal,
    });
  }

  /**
   * Delivers the events after `afterSeq` until the run ends or waits for an answer; gives the
   * number of the last event.
   *
   * A stream that is lost is opened again from there, after growing waits; an event is never
   * delivered twice. Throws RungentStreamError after `maxReconnects` of these, the signal's reason
   * once it is aborted, and whatever `onEvent` throws.
   */
  async streamRunEvents(runId: string, afterSeq: number, options: FollowOptions): Promise<number> {
    const open = (outgoing: Outgoing) =>
      this.#requests.send(at("runs", runId, "events", "stream"), outgoing);
    const onEvent = (event: RungentEvent) => {
      this.#delivered.set(runId, event.seq);
      return options.onEvent(event);
    };
    return new Follower(runId, afterSeq, open, { ...options, onEvent }).follow();
  }

  /** `createRun`, then `streamRunEvents` from the first event. */
  async run(
    sessionId: string,
    input: string,
    options: CreateRunOptions & FollowOptions,
  ): Promise<{ readonly run_id: string; readonly lastSeq: number }> {
    const { run_id } = await this.createRun(sessionId, input, options);
    return { run_id, lastSeq: await this.streamRunEvents(run_id, 0, options) };
  }

  /**
   * Answers a pending question; with `onEvent` the run is then followed as by `streamRunEvents`.
   *
   * `value` is in one of the forms that `checkAnswer` gives. Sending the same answer again is
   * harmless.
   */
  async respond(
    runId: string,
    interactionId: string,
    value: JsonValue,
    options: RespondOptions = {},
  ): Promise<Receipt> {
    const { onEvent, afterSeq = this.#delivered.get(runId) ?? 0, signal } = options;
    const body = { interaction_id: interactionId, value };
    const path = at("runs", runId, "responses");
    const receipt = await this.#requests.json<Receipt>(path, { method: "POST", body, signal });
    if (onEvent !== undefined) {
      await this.streamRunEvents(runId, afterSeq, { ...options, onEvent });
    }
    return receipt;
  }

  /** All events after `afterSeq` that are stored now. */
  async listEvents(
    runId: string,
    afterSeq = 0,
    { signal }: Aborting = {},
  ): Promise<readonly RungentEvent[]> {
    const found: RungentEvent[] = [];
    let query: Outgoing["query"] | null = { after_seq: afterSeq, limit: 500 };
    while (query !== null) {
      const page: [readonly RungentEvent[], URLSearchParams | null] = await this.#requests.page(
        at("runs", runId, "events"),
        { query, signal },
      );
      found.push(...page[0]);
      query = page[1] && Object.fromEntries(page[1]);
    }
    return found;
  }

  /** Cancels a run for good. Cancelling one that has ended changes nothing. */
  cancel(runId: string, { signal }: Aborting = {}): Promise<CancelledRun> {
    return this.#requests.json(at("runs", runId, "cancel"), { method: "POST", signal });
  }

  /** Starts a new run for the message of a failed one, which must be its session's newest. */
  retry(
    runId: string,
    { idempotencyKey, signal }: Pick<CreateRunOptions, "idempotencyKey" | "signal"> = {},
  ): Promise<RetryReceipt> {
    const headers = keyed(idempotencyKey);
    return this.#requests.json(at("runs", runId, "retry"), { method: "POST", headers, signal });
  }

  async #list<T>(path: string, { limit, cursor, signal }: PageOptions): Promise<Page<T>> {
    const query = { limit, cursor: cursor ?? undefined };
    const [items, next] = await this.#requests.page<T>(path, { query, signal });
    return { items, next: next?.get("cursor") ?? null };
  }
}

function at(...segments: string[]): string {
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join("");
}

function keyed(key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { "Idempotency-Key": key };
}
