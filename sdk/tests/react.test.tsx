// @vitest-environment happy-dom
import { act, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RungentClient, type RungentEvent } from "../src/index.js";
import { type RungentRunView, useRungentRun } from "../src/react.js";
import { frames, log } from "./logs.js";
import { json, open, server } from "./server.js";

const { events } = log("text_answered");
const RUN = events[0]!.run_id;

let root: Root;
let view: RungentRunView;

function Run({ client, runId }: { client: RungentClient; runId: string | null }) {
  view = useRungentRun(client, runId, { maxReconnects: 0 });
  return <p>{view.state.content ?? view.state.text}</p>;
}

async function shown(client: RungentClient, runId: string | null): Promise<void> {
  await act(async () => {
    root.render(
      <StrictMode>
        <Run client={client} runId={runId} />
      </StrictMode>,
    );
    await settled();
  });
}

function settled(): Promise<unknown> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A stream that the test writes into. */
function pipe() {
  let wire: ReadableStreamDefaultController<Uint8Array> | undefined;
  const start = (made: ReadableStreamDefaultController<Uint8Array>) => {
    wire = made;
  };
  const send = (sent: readonly RungentEvent[]) => {
    return act(async () => {
      wire?.enqueue(new TextEncoder().encode(frames(sent)));
      await settled();
    });
  };
  const lose = () =>
    act(async () => {
      wire?.error(new TypeError("lost"));
      await settled();
    });
  return { reply: () => new Response(new ReadableStream({ start })), send, lose };
}

beforeEach(() => {
  vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);
  root = createRoot(document.createElement("div"));
});

afterEach(() => {
  act(() => root.unmount());
  vi.unstubAllGlobals();
});

test("a run is shown live, answered, and followed through its pause to its end", async () => {
  const { reply, send } = pipe();
  const receipt = { run_id: RUN, status: "running" };
  const { fetch, seen } = server(reply, json(receipt, 202));
  const client = new RungentClient({ baseUrl: "/api", fetch });
  await shown(client, RUN);
  expect(view.state.status).toBe("idle");
  await send(events.slice(0, 5));
  expect(view.state.interaction?.kind).toBe("text");
  await act(async () => void (await view.respond("Tuesday")));
  expect(seen.at(-1)!.body).toEqual({
    interaction_id: view.state.interaction!.id,
    value: "Tuesday",
  });
  await send(events.slice(5));
  expect(view.state).toMatchObject({ status: "completed", content: "Done.", interaction: null });
});

test("a lost transport fails the view, and resuming goes on from the last event", async () => {
  const [first, second] = [pipe(), pipe()];
  const { fetch, seen } = server(first.reply, second.reply);
  await shown(new RungentClient({ baseUrl: "/api", fetch }), RUN);
  await first.send(events.slice(0, 3));
  await first.lose();
  expect(view.state.status).toBe("failed");
  expect(view.transportError).toMatchObject({ name: "RungentStreamError", lastSeq: 3 });
  await act(async () => {
    view.resume();
    await settled();
  });
  expect(view.state).toMatchObject({ status: "running", error: null });
  await second.send(events.slice(3));
  expect(view.state.status).toBe("completed");
  expect(seen.at(-1)!.url).toContain("after_seq=3&until=terminal");
});

test("another run begins anew, and leaving closes the stream only", async () => {
  const signals: AbortSignal[] = [];
  const noted: Parameters<typeof server>[0] = (asked) => {
    signals.push(asked.init.signal!);
    return open(asked.url.includes(RUN) ? events.slice(0, 3) : [])(asked);
  };
  const { fetch, seen } = server(noted, noted);
  const client = new RungentClient({ baseUrl: "/api", fetch });
  await shown(client, RUN);
  expect(view.state.runId).toBe(RUN);
  await shown(client, "run_2");
  expect(view.state).toMatchObject({ runId: null, status: "idle" });
  await shown(client, null);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  expect(seen.every(({ method }) => method === "GET")).toBe(true);
  await expect(view.respond("x")).rejects.toThrow("asks nothing");
  await expect(view.cancel()).rejects.toThrow("no run");
});

test("a run is cancelled by its id", async () => {
  const cancelled = { id: RUN, run_id: RUN, status: "cancelled" };
  const { fetch, seen } = server(open(events.slice(0, 3)), json(cancelled));
  await shown(new RungentClient({ baseUrl: "/api", fetch }), RUN);
  await act(async () => expect(await view.cancel()).toEqual(cancelled));
  expect(seen.at(-1)).toMatchObject({ method: "POST", url: `/api/runs/${RUN}/cancel` });
});
