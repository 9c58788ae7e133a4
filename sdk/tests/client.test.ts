import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  type FollowOptions,
  RungentApiError,
  RungentClient,
  type RungentClientOptions,
  type RungentEvent,
  RungentStreamError,
} from "../src/index.js";
import { log } from "./logs.js";
import { json, open, server, stream } from "./server.js";

const { events } = log("text_answered");
const RUN = events[0]!.run_id;
const ASKED = events.findIndex(({ type }) => type === "interaction.requested") + 1;

type Replies = Parameters<typeof server>;

function talk(replies: Replies, options: Partial<RungentClientOptions> = {}) {
  const { fetch, seen } = server(...replies);
  return { client: new RungentClient({ baseUrl: "/api/", fetch, ...options }), seen };
}

/** Follows, and lets the waits between reconnections pass at once. */
async function followed(replies: Replies, afterSeq = 0, options: Partial<FollowOptions> = {}) {
  const { client, seen } = talk(replies);
  const delivered: RungentEvent[] = [];
  const onEvent = (event: RungentEvent) => void delivered.push(event);
  const begun = Date.now();
  const end = client.streamRunEvents(RUN, afterSeq, { onEvent, ...options }).then(
    (lastSeq) => ({ lastSeq, error: null }),
    (error: unknown) => ({ lastSeq: null, error }),
  );
  await vi.runAllTimersAsync();
  return { ...(await end), delivered, seen, waited: Date.now() - begun };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const REQUESTS: [string, (client: RungentClient) => Promise<unknown>, string, object?][] = [
  ["createSession", (c) => c.createSession(), "POST /api/sessions", {}],
  [
    "createSession with everything",
    (c) => c.createSession({ agent: "a", title: "t", resource: { n: 1 } }),
    "POST /api/sessions",
    { agent: "a", title: "t", resource: { n: 1 } },
  ],
  ["getSession", (c) => c.getSession("s/1"), "GET /api/sessions/s%2F1"],
  [
    "setSessionTitle",
    (c) => c.setSessionTitle("s", null),
    "PATCH /api/sessions/s",
    { title: null },
  ],
  ["createRun", (c) => c.createRun("s", "hi"), "POST /api/sessions/s/runs", { input: "hi" }],
  [
    "createRun in place of a waiting one",
    (c) => c.createRun("s", "hi", { ifActive: "cancel_waiting" }),
    "POST /api/sessions/s/runs",
    { input: "hi", if_active: "cancel_waiting" },
  ],
  [
    "respond",
    (c) => c.respond("r", "i", null),
    "POST /api/runs/r/responses",
    { interaction_id: "i", value: null },
  ],
  ["cancel", (c) => c.cancel("r"), "POST /api/runs/r/cancel"],
  ["retry", (c) => c.retry("r"), "POST /api/runs/r/retry"],
];

describe("requests", () => {
  test.each(REQUESTS)("%s", async (_, call, request, body) => {
    const { client, seen } = talk([json({ answer: 42 })]);
    expect(await call(client)).toEqual({ answer: 42 });
    expect(`${seen[0]!.method} ${seen[0]!.url}`).toBe(request);
    expect(seen[0]!.body).toEqual(body);
    expect(seen[0]!.headers.get("Content-Type")).toBe(body ? "application/json" : null);
  });

  test("keys make creations and retries repeatable", async () => {
    const { client, seen } = talk([json({}), json({})]);
    await client.createRun("s", "hi", { idempotencyKey: "k1" });
    await client.retry("r", { idempotencyKey: "k2" });
    expect(seen.map(({ headers }) => headers.get("Idempotency-Key"))).toEqual(["k1", "k2"]);
  });

  test("headers are asked for each time, and credentials go along", async () => {
    let asked = 0;
    const headers = async () => ({ Authorization: `Bearer ${++asked}` });
    const { client, seen } = talk([json([]), json([])], { headers, credentials: "include" });
    await client.listSessions();
    await client.listSessions();
    expect(seen.map((one) => one.headers.get("Authorization"))).toEqual(["Bearer 1", "Bearer 2"]);
    expect(seen[0]!.init.credentials).toBe("include");
  });

  test("a page names the cursor of the next one", async () => {
    const link = { Link: '</elsewhere/sessions?limit=1&cursor=a%2Bb%3D>; rel="next"' };
    const { client, seen } = talk([json([1], 200, link), json([2])]);
    const { items, next } = await client.listSessions({ limit: 1 });
    expect([items, next]).toEqual([[1], "a+b="]);
    expect(await client.listRuns("s", { cursor: next })).toEqual({ items: [2], next: null });
    expect(seen.map(({ url }) => url)).toEqual([
      "/api/sessions?limit=1",
      "/api/sessions/s/runs?cursor=a%2Bb%3D",
    ]);
  });

  test("stored events are read page by page", async () => {
    const link = { Link: '</x/runs/r/events?after_seq=4&limit=2>; rel="next"' };
    const { client, seen } = talk([json(events.slice(2, 4), 200, link), json(events.slice(4))]);
    expect(await client.listEvents("r", 2)).toEqual(events.slice(2));
    expect(seen.map(({ url }) => url)).toEqual([
      "/api/runs/r/events?after_seq=2&limit=500",
      "/api/runs/r/events?after_seq=4&limit=2",
    ]);
  });
});

describe("errors", () => {
  test("tell status, code, text and the fields of the code", async () => {
    const detail = {
      code: "active_run_conflict",
      message: "Busy.",
      run_id: "r",
      status: "running",
    };
    const { client } = talk([json({ detail }, 409)]);
    const error = await client.createRun("s", "hi").catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(RungentApiError);
    expect(error).toMatchObject({ status: 409, code: detail.code, message: "Busy.", detail });
  });

  test("tell when to try again", async () => {
    const detail = { code: "runtime_busy", message: "Busy." };
    const { client } = talk([json({ detail }, 429, { "Retry-After": "7" })]);
    await expect(client.createRun("s", "hi")).rejects.toMatchObject({ retryAfter: 7 });
  });

  test.each([
    [new Response("<html>", { status: 502 }), "HTTP 502"],
    [json({ detail: "Not Found" }, 404), "Not Found"],
    [json(null, 500), "HTTP 500"],
  ])("of what stands between have a code of their own", async (response, message) => {
    const { client } = talk([response]);
    const error = client.cancel("r");
    await expect(error).rejects.toMatchObject({ code: "http_error", message, detail: { message } });
  });

  test("of the network pass through", async () => {
    const { client } = talk([]);
    await expect(client.cancel("r")).rejects.toThrow("nobody listens");
  });
});

describe("following", () => {
  test("delivers to the end of the run", async () => {
    const { lastSeq, delivered, seen } = await followed([stream(events)]);
    expect(delivered).toEqual(events);
    expect(lastSeq).toBe(events.length);
    expect(seen.map(({ url }) => url)).toEqual([`/api/runs/${RUN}/events/stream?after_seq=0`]);
  });

  test("stops at a pending question", async () => {
    const { lastSeq, seen } = await followed([stream(events.slice(0, ASKED))]);
    expect([lastSeq, seen.length]).toEqual([ASKED, 1]);
  });

  test("stays at a question if it is to reach the end of the run", async () => {
    const replies = [stream(events.slice(0, ASKED)), stream(events.slice(ASKED))];
    const { lastSeq } = await followed(replies, 0, { until: "terminal" });
    expect(lastSeq).toBe(events.length);
  });

  test("stops where there is nothing more", async () => {
    expect((await followed([stream([])], 5)).lastSeq).toBe(5);
  });

  test("drops what was delivered already", async () => {
    expect((await followed([stream(events)], 3)).delivered).toEqual(events.slice(3));
  });

  test.each(["clean", "break", "drain"] as const)(
    "goes on from the last event after a %s end in the middle",
    async (end) => {
      for (let cut = 1; cut < events.length; cut += 1) {
        if (end === "clean" && cut === ASKED) continue;
        const replies = [stream(events.slice(0, cut), end), stream(events.slice(cut - 1))];
        const { delivered, seen } = await followed(replies);
        expect(delivered).toEqual(events);
        expect(seen[1]!.url).toBe(`/api/runs/${RUN}/events/stream?after_seq=${cut}`);
      }
    },
  );

  test("has arrived when the connection breaks after the last event", async () => {
    const { lastSeq, seen } = await followed([stream(events, "break")]);
    expect([lastSeq, seen.length]).toEqual([events.length, 1]);
  });

  test("waits longer each time, then gives up and says where", async () => {
    const lost = new TypeError("refused");
    const first = stream(events.slice(0, 2), "break");
    const { error, seen, waited } = await followed([first, lost, lost, lost]);
    expect(error).toBeInstanceOf(RungentStreamError);
    expect(error).toMatchObject({ runId: RUN, lastSeq: 2, cause: lost });
    expect([seen.length, waited]).toEqual([4, 1000 + 2000 + 4000]);
  });

  test("waits little again once something has arrived", async () => {
    const parts = events.map((event) => stream([event], "break"));
    const { delivered, waited } = await followed(parts, 0, { maxReconnects: 100 });
    expect(delivered).toEqual(events);
    expect(waited).toBe((events.length - 1) * 1000);
  });

  test("bears a server that restarts, as long as it asks", async () => {
    const detail = { code: "shutting_down", message: "Stopping." };
    const stopping = json({ detail }, 503, { "Retry-After": "9" });
    const replies = [stream(events.slice(0, 2), "drain"), stopping, stream(events.slice(2))];
    const { delivered, waited } = await followed(replies);
    expect(delivered).toEqual(events);
    expect(waited).toBe(1000 + 9000);
  });

  test("takes a refusal at once", async () => {
    const detail = { code: "not_found", message: "Not found." };
    const first = await followed([json({ detail }, 503)]);
    expect([first.error, first.seen.length]).toMatchObject([{ status: 503 }, 1]);
    const later = await followed([stream(events.slice(0, 2), "break"), json({ detail }, 404)]);
    expect([later.error, later.seen.length]).toMatchObject([{ status: 404 }, 2]);
  });

  test("treats what is no event as a lost stream", async () => {
    const { error } = await followed([new Response("data: {}\n\n")], 0, { maxReconnects: 0 });
    expect(error).toMatchObject({ name: "RungentStreamError", cause: expect.any(SyntaxError) });
  });

  test("hands on what the handler throws, and asks no more", async () => {
    const { client, seen } = talk([stream(events, "break"), stream(events)]);
    const onEvent = ({ seq }: RungentEvent) => {
      if (seq === 2) throw new Error("mine");
    };
    await expect(client.streamRunEvents(RUN, 0, { onEvent })).rejects.toThrow("mine");
    expect(seen.length).toBe(1);
  });

  test("lets a slow handler finish before the next event", async () => {
    const { client } = talk([stream(events)]);
    const order: string[] = [];
    const onEvent = async ({ seq }: RungentEvent) => {
      order.push(`begin ${seq}`);
      await Promise.resolve();
      order.push(`end ${seq}`);
    };
    await client.streamRunEvents(RUN, 0, { onEvent });
    expect(order).toEqual(events.flatMap(({ seq }) => [`begin ${seq}`, `end ${seq}`]));
  });
});

describe("aborting", () => {
  const reason = new Error("left");

  test.each(["before", "while reading", "in the handler", "while waiting"])(
    "%s rejects with the reason",
    async (when) => {
      const leaving = new AbortController();
      const broken = stream(events.slice(0, 2), "break");
      const { client, seen } = talk([when === "while waiting" ? broken : open(events.slice(0, 3))]);
      if (when === "before") leaving.abort(reason);
      const delivered: number[] = [];
      const onEvent = ({ seq }: RungentEvent) => {
        delivered.push(seq);
        if (when === "in the handler" && seq === 2) leaving.abort(reason);
      };
      const { signal } = leaving;
      const end = client.streamRunEvents(RUN, 0, { onEvent, signal });
      const rejected = expect(end).rejects.toBe(reason);
      if (when.startsWith("while")) {
        await vi.advanceTimersByTimeAsync(500);
        leaving.abort(reason);
      }
      await rejected;
      expect(seen.length).toBe(when === "before" ? 0 : 1);
      if (when === "in the handler") expect(delivered).toEqual([1, 2]);
      expect(vi.getTimerCount()).toBe(0);
    },
  );
});

test("aborting at the very last event rejects, too", async () => {
  const leaving = new AbortController();
  const { client } = talk([stream(events)]);
  const onEvent = ({ seq }: RungentEvent) => {
    if (seq === events.length) leaving.abort("left");
  };
  const end = client.streamRunEvents(RUN, 0, { onEvent, signal: leaving.signal });
  await expect(end).rejects.toBe("left");
});

test("a run is created and followed", async () => {
  const { client, seen } = talk([json({ run_id: RUN, status: "running" }, 202), stream(events)]);
  const delivered: RungentEvent[] = [];
  const onEvent = (event: RungentEvent) => void delivered.push(event);
  const made = await client.run("s", "hi", { onEvent, idempotencyKey: "k", until: "terminal" });
  expect(made).toEqual({ run_id: RUN, lastSeq: events.length });
  expect(delivered).toEqual(events);
  expect(seen[0]!.headers.get("Idempotency-Key")).toBe("k");
  expect(seen[1]!.url).toMatch(/after_seq=0&until=terminal$/);
});

test("an answer is followed from the last event that was delivered", async () => {
  const receipt = { run_id: RUN, status: "running" };
  const { client, seen } = talk([
    stream(events.slice(0, ASKED)),
    json(receipt, 202),
    stream(events.slice(ASKED)),
    json(receipt, 202),
    stream([]),
  ]);
  const onEvent = vi.fn();
  await client.streamRunEvents(RUN, 0, { onEvent });
  expect(await client.respond(RUN, "int_1", "Tuesday", { onEvent })).toEqual(receipt);
  expect(onEvent).toHaveBeenCalledTimes(events.length);
  await client.respond(RUN, "int_1", "Tuesday", { onEvent, afterSeq: 4 });
  const cursors = seen.map(({ url }) => new URL(url, "http://x").searchParams.get("after_seq"));
  expect(cursors).toEqual(["0", null, String(ASKED), null, "4"]);
});
