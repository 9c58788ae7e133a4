import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  EVENT_TYPES,
  failRungentState,
  initialRungentState,
  type RungentEvent,
  type RungentState,
  reduceRungentEvent,
} from "../src/index.js";
import { GOLDEN_LOGS, log } from "./logs.js";

function sum(events: readonly RungentEvent[], from = initialRungentState): RungentState {
  return events.reduce(reduceRungentEvent, from);
}

function digest(state: RungentState): string {
  return createHash("sha256").update(canonical(state)).digest("hex").slice(0, 16);
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

function event(type: string, data: object, seq = 1, run_id = "run_1"): RungentEvent {
  const created_at = "2026-01-02T03:04:05.000000Z";
  const made = { v: 1, id: `evt_${seq}`, seq, type, session_id: "ses_1", run_id, created_at, data };
  return made as RungentEvent;
}

describe.each(GOLDEN_LOGS.map((golden) => [golden.name, golden] as const))("%s", (_, golden) => {
  test("gives after every event the state that Python gives", () => {
    const states = [initialRungentState];
    for (const next of golden.events) states.push(reduceRungentEvent(states.at(-1)!, next));
    for (const [index, expected] of Object.entries(golden.states)) {
      expect(states[Number(index)]).toStrictEqual(expected);
    }
    expect(states.map(digest)).toEqual(golden.digests);
  });

  test("ends with nothing running and nothing asked", () => {
    const state = sum(golden.events);
    expect(state.activities.filter((row) => row.status === "running")).toEqual([]);
    expect(state.interaction).toBeNull();
  });
});

const anyLog = fc.constantFrom(...GOLDEN_LOGS).map((golden) => golden.events);

test("any cuts, repetitions and late arrivals give the same state", () => {
  fc.assert(
    fc.property(anyLog, fc.array(fc.tuple(fc.nat(30), fc.nat(30))), (events, repeats) => {
      let state = initialRungentState;
      for (const [index, next] of events.entries()) {
        state = reduceRungentEvent(state, next);
        for (const [at, back] of repeats) {
          if (at !== index) continue;
          const again = events.slice(Math.max(0, index - back), index + 1);
          expect(sum(again, state)).toBe(state);
        }
      }
      expect(state).toEqual(sum(events));
    }),
  );
});

test("two tabs that joined at different times agree", () => {
  fc.assert(
    fc.property(anyLog, fc.nat(40), fc.nat(40), (events, joined, stored) => {
      const first = sum(events);
      const replayed = sum(events.slice(0, joined + stored));
      const second = sum(events.slice(joined), JSON.parse(JSON.stringify(replayed)));
      expect(second).toEqual(first);
    }),
  );
});

test("states and events are never changed", () => {
  for (const { events } of GOLDEN_LOGS) {
    let state = deepFrozen(structuredClone(initialRungentState));
    for (const next of structuredClone(events)) {
      state = deepFrozen(reduceRungentEvent(state, deepFrozen(next)));
    }
  }
});

function deepFrozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(deepFrozen);
    Object.freeze(value);
  }
  return value;
}

test("the logs hold every type of event that there is", () => {
  const seen = new Set<string>(GOLDEN_LOGS.flatMap(({ events }) => events.map(({ type }) => type)));
  expect(seen).toEqual(new Set(EVENT_TYPES));
});

test("of an event of a later version only the number counts", () => {
  const before = sum(log("form_answered").events.slice(0, 6));
  const unknown = event("weather.changed", { sky: "blue" }, 7, before.runId!);
  expect(reduceRungentEvent(before, unknown)).toEqual({ ...before, lastSeq: 7 });
});

test("a question of a later version is shown as it came", () => {
  const data = { id: "int_1", kind: "data", prompt: "Which file?", schema: { type: "object" } };
  const state = reduceRungentEvent(initialRungentState, event("interaction.requested", data));
  expect(state.interaction).toEqual(data);
  const row = { kind: "interaction", id: "int_1", status: "running", interactionKind: "data" };
  expect(state.activities).toEqual([{ ...row, prompt: "Which file?" }]);
});

test("an event of another run starts anew", () => {
  const done = sum(log("retried").events);
  const started = event("run.started", { status: "running" }, 1, "run_2");
  expect(reduceRungentEvent(done, started)).toEqual(sum([started]));
});

test("a retry shows which one it is and takes the partial text away", () => {
  const { events } = log("retried");
  const retrying = events.findIndex(({ type }) => type === "model.retrying");
  const [before, after] = [sum(events.slice(0, retrying - 1)), sum(events.slice(0, retrying + 1))];
  expect(before.text).toBe("Half a text");
  expect(after.text).toBe("");
  const counts = { retry: 1, maxRetries: 3, retryReason: "network" };
  expect(after.activities).toEqual([
    { kind: "model", id: "model:1", status: "running", step: 1, ...counts },
  ]);
});

test("a failed transport settles what runs, and a terminal event may still follow", () => {
  const { events } = log("tools_side_by_side");
  const before = sum(events.slice(0, 6));
  const failed = failRungentState(before, "offline");
  expect(failed).toMatchObject({ status: "failed", error: "offline", errorCode: null });
  expect(failed.activities.map(({ status }) => status)).not.toContain("running");
  expect(failed.lastSeq).toBe(before.lastSeq);
  expect(sum(events.slice(6), failed).status).toBe("completed");
});

test("an expired question is settled like a cancelled one", () => {
  const asked = log("text_answered").events.slice(0, 5);
  const { id, kind } = sum(asked).interaction!;
  const data = { interaction_id: id, kind, outcome: "expired" };
  const state = sum([event("interaction.resolved", data, 99, asked[0]!.run_id)], sum(asked));
  expect(state.activities.at(-1)).toMatchObject({ status: "cancelled", outcome: "expired" });
});
