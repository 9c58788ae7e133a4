/** One React hook over client and reducer: a run as it is now. */

import { useCallback, useEffect, useRef, useState } from "react";
import type { RungentClient } from "./client.js";
import { failRungentState, reduceRungentEvent } from "./reduce/reduce.js";
import { initialRungentState, type RungentState } from "./state.js";
import type { CancelledRun, JsonValue, Receipt } from "./types.js";

const RECONNECTS = 10;

export interface UseRungentRunOptions {
  /** How often a lost stream is opened again before the view fails, 10 by default. */
  readonly maxReconnects?: number;
}

export interface RungentRunView {
  /** The sum of the run's events; `status` is `failed` as well when the transport failed. */
  readonly state: RungentState;
  /** Why the transport failed: then `resume` goes on from the last event. */
  readonly transportError: unknown;
  /** Answers the pending question. Rejects as `RungentClient.respond` does. */
  readonly respond: (value: JsonValue) => Promise<Receipt>;
  /** Cancels the run. */
  readonly cancel: () => Promise<CancelledRun>;
  /** Follows again after the transport failed. */
  readonly resume: () => void;
}

interface View {
  readonly runId: string | null;
  readonly state: RungentState;
  readonly error: unknown;
}

const NOTHING: View = { runId: null, state: initialRungentState, error: null };

/**
 * Follows a run from its first event through all pauses to its end; null follows nothing.
 *
 * Answers, cancels and progress from other tabs show up by themselves. Unmounting, or another
 * `runId`, ends the following and leaves the run alone. Keep `client` stable between renders.
 */
export function useRungentRun(
  client: RungentClient,
  runId: string | null,
  { maxReconnects = RECONNECTS }: UseRungentRunOptions = {},
): RungentRunView {
  const [view, setView] = useState(NOTHING);
  const [attempt, setAttempt] = useState(0);
  // What the events add up to, without a failure of the transport: where to resume from.
  const kept = useRef(NOTHING);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt follows again
  useEffect(() => {
    if (runId === null) return;
    const following = new AbortController();
    const show = (state: RungentState, error: unknown = null) => setView({ runId, state, error });
    if (kept.current.runId !== runId) kept.current = { ...NOTHING, runId };
    show(kept.current.state);
    client
      .streamRunEvents(runId, kept.current.state.lastSeq ?? 0, {
        signal: following.signal,
        until: "terminal",
        maxReconnects,
        onEvent: (event) => {
          const state = reduceRungentEvent(kept.current.state, event);
          kept.current = { runId, state, error: null };
          show(state);
        },
      })
      .catch((error: unknown) => {
        if (following.signal.aborted) return;
        const message = error instanceof Error ? error.message : String(error);
        show(failRungentState(kept.current.state, message), error);
      });
    return () => following.abort();
  }, [client, runId, maxReconnects, attempt]);

  const shown = view.runId === runId ? view : NOTHING;
  const pending = shown.state.interaction?.id ?? null;
  const respond = useCallback(
    async (value: JsonValue) => {
      if (runId === null || pending === null) throw new Error("the run asks nothing");
      return client.respond(runId, pending, value);
    },
    [client, runId, pending],
  );
  const cancel = useCallback(async () => {
    if (runId === null) throw new Error("there is no run");
    return client.cancel(runId);
  }, [client, runId]);
  const resume = useCallback(() => setAttempt((made) => made + 1), []);
  return { state: shown.state, transportError: shown.error, respond, cancel, resume };
}
