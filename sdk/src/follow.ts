/** Following one run: reading its stream, and opening it again from where it broke. */

import { EventDecoder } from "./decode.js";
import { RungentApiError, RungentStreamError } from "./errors.js";
import type { Outgoing } from "./requests.js";
import { isTerminal } from "./state.js";
import type { RungentEvent } from "./types.js";

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 30_000;
const DRAINED = "the server is stopping";

export interface FollowOptions {
  /** Gets every event once, in order. If it returns a promise, the next event waits for it. */
  readonly onEvent: (event: RungentEvent) => void | PromiseLike<void>;
  /** Ends the following, and nothing else: the run goes on. */
  readonly signal?: AbortSignal | undefined;
  /** `"terminal"` stays through pauses; otherwise a pending question ends the stream. */
  readonly until?: "terminal" | undefined;
  /** How often a lost stream is opened again, 3 by default. */
  readonly maxReconnects?: number | undefined;
}

type Open = (outgoing: Outgoing) => Promise<Response>;

/** How one connection ended: at a boundary of the run, or so that it has to be opened again. */
type Ending = { readonly over: true } | { readonly over: false; readonly cause: unknown };

export class Follower {
  /** The last event that was delivered. */
  lastSeq: number;
  readonly #runId: string;
  readonly #open: Open;
  readonly #options: FollowOptions;
  #last: RungentEvent | null = null;
  #firstWait = FIRST_WAIT_MS;

  constructor(runId: string, afterSeq: number, open: Open, options: FollowOptions) {
    this.lastSeq = afterSeq;
    this.#runId = runId;
    this.#open = open;
    this.#options = options;
  }

  /**
   * Delivers events until the stream is over; gives the number of the last one.
   *
   * Throws RungentApiError for a refusal, RungentStreamError when the stream was lost too often,
   * the signal's reason, and whatever `onEvent` throws.
   */
  async follow(): Promise<number> {
    const { maxReconnects = 3, signal } = this.#options;
    // Waits grow while nothing arrives.
    let fruitless = -1;
    for (let reconnects = 0; ; reconnects += 1) {
      const before = this.lastSeq;
      const ending = await this.#connection(reconnects > 0);
      if (ending.over) return this.lastSeq;
      if (reconnects >= maxReconnects) {
        throw new RungentStreamError(this.#runId, this.lastSeq, ending.cause);
      }
      fruitless = this.lastSeq > before ? 0 : fruitless + 1;
      await sleep(this.#wait(fruitless, ending.cause), signal);
    }
  }

  #wait(fruitless: number, cause: unknown): number {
    const asked = cause instanceof RungentApiError ? (cause.retryAfter ?? 0) * 1000 : 0;
    const grown = this.#firstWait * 2 ** Math.min(fruitless, 10);
    return Math.min(Math.max(grown, asked), LONGEST_WAIT_MS);
  }

  async #connection(again: boolean): Promise<Ending> {
    const { signal, until } = this.#options;
    let response: Response;
    try {
      response = await this.#open({
        headers: { Accept: "text/event-stream" },
        query: { after_seq: this.lastSeq, until },
        signal,
      });
    } catch (error) {
      signal?.throwIfAborted();
      // A server that restarts refuses for a while; what it refuses at first is an answer.
      if (error instanceof RungentApiError && !(again && isTemporary(error))) throw error;
      return { over: false, cause: error };
    }
    if (response.body === null) return { over: false, cause: new TypeError("no body") };
    return this.#read(response.body.getReader());
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Ending> {
    const decoder = new EventDecoder();
    let delivered = false;
    try {
      for (;;) {
        let items: ReturnType<EventDecoder["feed"]>;
        try {
          const { done, value } = await reader.read();
          if (done) return this.#atEnd(delivered);
          items = decoder.feed(value);
        } catch (error) {
          this.#options.signal?.throwIfAborted();
          return this.#hasEnded() ? { over: true } : { over: false, cause: error };
        }
        for (const item of items) {
          if (item.kind === "reconnect") {
            return this.#hasEnded() ? { over: true } : { over: false, cause: DRAINED };
          }
          if (item.kind === "retry") this.#firstWait = item.milliseconds;
          else delivered = (await this.#deliver(item.event)) || delivered;
        }
      }
    } finally {
      // Frees the connection when something ended the loop early; a failed one has nothing to free.
      reader.cancel().catch(() => undefined);
    }
  }

  /** Hands one event out; whether it was new. */
  async #deliver(event: RungentEvent): Promise<boolean> {
    const { onEvent, signal } = this.#options;
    signal?.throwIfAborted();
    if (event.seq <= this.lastSeq) return false;
    this.lastSeq = event.seq;
    this.#last = event;
    await onEvent(event);
    signal?.throwIfAborted();
    return true;
  }

  #atEnd(delivered: boolean): Ending {
    // A server ends a stream at a question only if it is pending. A connection that breaks there
    // proves nothing: the answer may be stored already.
    const asks = this.#last?.type === "interaction.requested" && this.#options.until !== "terminal";
    if (!delivered || asks || this.#hasEnded()) return { over: true };
    return { over: false, cause: new Error("the stream ended in the middle of the run") };
  }

  #hasEnded(): boolean {
    const [family, what = ""] = this.#last?.type.split(".") ?? [];
    return family === "run" && isTerminal(what);
  }
}

function isTemporary(error: RungentApiError): boolean {
  return error.status >= 500 || error.status === 429;
}

/** Waits; rejects with the signal's reason when it is aborted. */
function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const aborted = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", aborted, { once: true });
  });
}
