/** Messages and runs of a session as turns: what was said, and each attempt to answer it. Pure. */

import {
  initialRungentState,
  isTerminal,
  type Message,
  type Run,
  type RungentState,
  type RunViewStatus,
} from "@rungent/sdk";

/** One run. `replayed` says whether `state` comes from its events, or only from list and answer. */
export interface Attempt {
  readonly runId: string;
  readonly state: RungentState;
  readonly replayed: boolean;
  /** Why it cannot be followed. */
  readonly problem: string | null;
}

/** A user message with its run, and with those that tried it again. */
export interface Turn {
  readonly text: string;
  readonly attempts: readonly Attempt[];
}

/** The turns of a session, oldest first. Attempts that are known from their events stay. */
export function turnsOf(
  runs: readonly Run[],
  messages: readonly Message[],
  known: ReadonlyMap<string, Attempt>,
): readonly Turn[] {
  const said = new Map(messages.map((message) => [`${message.role} ${message.run_id}`, message]));
  const turns: { text: string; attempts: Attempt[] }[] = [];
  for (const run of runs) {
    const attempt = known.get(run.id) ?? listed(run, said.get(`assistant ${run.id}`)?.content);
    const text = said.get(`user ${run.id}`)?.content;
    const previous = turns.at(-1);
    if (run.retried_from !== null && previous !== undefined) previous.attempts.push(attempt);
    else turns.push({ text: text ?? "", attempts: [attempt] });
  }
  return turns;
}

/** A run before any of its events is known. */
export function started(runId: string): Attempt {
  const state = { ...initialRungentState, runId, status: "running" as const };
  return { runId, state, replayed: false, problem: null };
}

function listed(run: Run, content: string | undefined): Attempt {
  const status = run.status === "queued" ? "running" : (run.status as RunViewStatus);
  const state = { ...initialRungentState, runId: run.id, status, content: content ?? null };
  return { runId: run.id, state, replayed: false, problem: null };
}

/** The attempt of the newest turn that counts. */
export function newest(turns: readonly Turn[]): Attempt | null {
  return turns.at(-1)?.attempts.at(-1) ?? null;
}

/** Whether its run may still do something. */
export function isActive(attempt: Attempt | null): boolean {
  return attempt !== null && !isTerminal(attempt.state.status);
}

/** The turns with one attempt in the place of its predecessor. */
export function replaced(turns: readonly Turn[], attempt: Attempt): readonly Turn[] {
  return turns.map((turn) =>
    turn.attempts.some(({ runId }) => runId === attempt.runId)
      ? { ...turn, attempts: turn.attempts.map((a) => (a.runId === attempt.runId ? attempt : a)) }
      : turn,
  );
}
