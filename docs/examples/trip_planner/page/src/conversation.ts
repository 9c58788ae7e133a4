/** One conversation: its turns, the run that is followed, and what a person can do about it. */

import {
  initialRungentState,
  isTerminal,
  type JsonValue,
  type Message,
  type Run,
  RungentApiError,
  reduceRungentEvent,
} from "@rungent/sdk";
import { client, connection } from "./connection.js";
import { Observable } from "./observable.js";
import { sessions } from "./sessions.js";
import { onTabs, tellTabs } from "./tabs.js";
import { trip } from "./trip.js";
import { type Attempt, isActive, newest, replaced, started, type Turn, turnsOf } from "./turns.js";

// What another tab was faster with: the events tell the rest.
const OVERTAKEN = ["interaction_already_resolved", "interaction_mismatch", "run_not_waiting"];

// Longer than the server is ever silent.
const SLEPT_MS = 30_000;
const ASK_AGAIN_MS = 5_000;

let made = 0;

export class Conversation extends Observable {
  /** Tells conversations apart, also those that have no id yet. */
  readonly key = made++;
  /** Null until the first message. */
  sessionId: string | null;
  turns: readonly Turn[] = [];
  loading: boolean;
  /** Why the conversation cannot be shown. */
  problem: string | null = null;

  readonly #ends: (() => void)[] = [];
  #following: { readonly runId: string; readonly abort: AbortController } | null = null;
  #closed = false;
  // Runs that were begun here: a list that was asked for before lacks them.
  #begun = 0;
  #unsent: { readonly text: string; readonly key: string } | null = null;

  constructor(sessionId: string | null) {
    super();
    this.sessionId = sessionId;
    this.loading = sessionId !== null;
  }

  /** Loads and follows until `close`. */
  open(): void {
    let hiddenAt = 0;
    const seen = () => {
      if (document.visibilityState === "hidden") hiddenAt = Date.now();
      // After a sleep a stream may be dead without having noticed.
      else if (Date.now() - hiddenAt > SLEPT_MS) this.reconnect();
      else void this.refresh();
    };
    const online = () => this.reconnect();
    // What is followed comes back by itself; this also asks when nothing is.
    const asking = setInterval(() => connection.lost && this.reconnect(), ASK_AGAIN_MS);
    addEventListener("online", online);
    document.addEventListener("visibilitychange", seen);
    this.#ends.push(
      () => clearInterval(asking),
      () => removeEventListener("online", online),
      () => document.removeEventListener("visibilitychange", seen),
      onTabs((sessionId) => sessionId === this.sessionId && void this.refresh()),
      () => this.#stopFollowing(),
    );
    void this.refresh();
  }

  close(): void {
    this.#closed = true;
    for (const end of this.#ends.splice(0)) end();
  }

  get attempt(): Attempt | null {
    return newest(this.turns);
  }

  /** Reads messages and runs again, keeps what is known from events, follows the newest run. */
  async refresh(): Promise<void> {
    const { sessionId } = this;
    if (sessionId === null) return;
    const begun = this.#begun;
    try {
      const [session, runs] = await Promise.all([client.getSession(sessionId), runsOf(sessionId)]);
      if (this.#closed) return;
      if (begun !== this.#begun) return this.refresh();
      this.#show(runs, session.messages);
    } catch (error) {
      if (this.loading || error instanceof RungentApiError) this.problem = explained(error);
    }
    this.loading = false;
    this.changed();
  }

  /** Follows again at once instead of after a while. */
  reconnect(): void {
    const { attempt } = this;
    this.#stopFollowing();
    if (attempt !== null && isActive(attempt)) this.#follow(attempt.runId);
    void sessions.refresh();
    trip.refresh();
    void this.refresh();
  }

  /** Sends a message; a question that waits is dropped for it. Throws what a person may read. */
  async send(text: string): Promise<void> {
    // The same key for the same message: a request whose answer was lost is not done twice.
    if (this.#unsent?.text !== text) this.#unsent = { text, key: crypto.randomUUID() };
    try {
      this.sessionId ??= (await sessions.create(text)).id;
      const options = { idempotencyKey: this.#unsent.key, ifActive: "cancel_waiting" } as const;
      const { run_id } = await client.createRun(this.sessionId, text, options);
      this.#unsent = null;
      this.#begun += 1;
      if (!this.turns.some(({ attempts }) => attempts.some(({ runId }) => runId === run_id))) {
        this.turns = [...this.turns, { text: text.trim(), attempts: [started(run_id)] }];
      }
      this.#follow(run_id);
      this.#tell();
    } catch (error) {
      if (isConflict(error)) void this.refresh();
      throw new Error(explained(error));
    }
  }

  /** Answers a question. Throws what a person may read, or the refusal of the value. */
  async respond(runId: string, interactionId: string, value: JsonValue): Promise<void> {
    try {
      await client.respond(runId, interactionId, value);
    } catch (error) {
      if (error instanceof RungentApiError && OVERTAKEN.includes(error.code)) {
        this.reconnect();
        throw new Error("This was answered somewhere else already.");
      }
      throw error instanceof RungentApiError && error.code === "invalid_response"
        ? error
        : new Error(explained(error));
    }
  }

  async cancel(runId: string): Promise<void> {
    await client.cancel(runId).catch((error) => {
      throw new Error(explained(error));
    });
  }

  /** Tries a failed run again; a second click gives the same new run. */
  async retry(runId: string): Promise<void> {
    try {
      const { run_id } = await client.retry(runId, { idempotencyKey: `again-${runId}` });
      this.#begun += 1;
      this.turns = this.turns.map((turn) =>
        turn.attempts.at(-1)?.runId === runId
          ? { ...turn, attempts: [...turn.attempts, started(run_id)] }
          : turn,
      );
      this.#follow(run_id);
      this.#tell();
    } catch (error) {
      void this.refresh();
      throw new Error(explained(error));
    }
  }

  /** Reads the steps of a run that is over. */
  async replay(runId: string): Promise<void> {
    try {
      const events = await client.listEvents(runId);
      if (events.length === 0) return;
      const state = events.reduce(reduceRungentEvent, initialRungentState);
      this.#put({ runId, state, replayed: true, problem: null });
    } catch {
      // The answer is shown already; the steps can be asked for again.
    }
  }

  #show(runs: readonly Run[], messages: readonly Message[]): void {
    const known = new Map(
      this.turns
        .flatMap(({ attempts }) => attempts)
        .filter(({ replayed }) => replayed)
        .map((attempt) => [attempt.runId, attempt]),
    );
    this.turns = turnsOf(runs, messages, known);
    this.problem = null;
    const last = this.attempt;
    if (last === null) return;
    if (isActive(last)) this.#follow(last.runId);
    else if (!last.replayed) void this.replay(last.runId);
  }

  #follow(runId: string): void {
    if (this.#closed || this.#following?.runId === runId) return;
    this.#stopFollowing();
    const abort = new AbortController();
    this.#following = { runId, abort };
    const known = this.#find(runId);
    let state = known?.replayed ? known.state : initialRungentState;
    this.changed();
    client
      .streamRunEvents(runId, state.lastSeq ?? 0, {
        until: "terminal",
        maxReconnects: Number.POSITIVE_INFINITY,
        signal: abort.signal,
        onEvent: (event) => {
          trip.notice(event);
          state = reduceRungentEvent(state, event);
          this.#put({ runId, state, replayed: true, problem: null });
          if (isTerminal(state.status)) this.#ended();
        },
      })
      .catch((error: unknown) => {
        if (abort.signal.aborted) return;
        this.#put({ runId, state, replayed: true, problem: explained(error) });
      })
      .finally(() => {
        if (this.#following?.abort === abort) this.#following = null;
      });
  }

  #stopFollowing(): void {
    this.#following?.abort.abort();
    this.#following = null;
  }

  #ended(): void {
    trip.refresh();
    void sessions.refresh();
  }

  #tell(): void {
    this.changed();
    void sessions.refresh();
    if (this.sessionId !== null) tellTabs(this.sessionId);
  }

  #find(runId: string): Attempt | undefined {
    return this.turns.flatMap(({ attempts }) => attempts).find((one) => one.runId === runId);
  }

  #put(attempt: Attempt): void {
    this.turns = replaced(this.turns, attempt);
    this.changed();
  }
}

async function runsOf(sessionId: string): Promise<readonly Run[]> {
  const runs: Run[] = [];
  let cursor: string | null = null;
  do {
    const page = await client.listRuns(sessionId, { limit: 500, cursor });
    runs.push(...page.items);
    cursor = page.next;
  } while (cursor !== null);
  return runs;
}

function isConflict(error: unknown): boolean {
  return error instanceof RungentApiError && error.code === "active_run_conflict";
}

/** An error in words for the person who sees the page. */
function explained(error: unknown): string {
  if (isConflict(error)) return "The assistant is still at work on the message before.";
  if (error instanceof RungentApiError) {
    return error.code === "not_found" ? "There is no such conversation." : error.message;
  }
  return "The server cannot be reached. Nothing is lost: try again.";
}
