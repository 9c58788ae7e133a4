/** The built package under Node talks to a really served app, which is killed once. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  choiceAnswer,
  initialRungentState,
  RungentApiError,
  RungentClient,
  type RungentEvent,
  type RungentState,
  reduceRungentEvent,
} from "@rungent/sdk";
import { afterAll, beforeAll, expect, test } from "vitest";

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const PYTHON = process.env.RUNGENT_PYTHON ?? join(ROOT, ".venv", "bin", "python");
const FOLDER = mkdtempSync(join(tmpdir(), "rungent-sdk-"));

let served: ChildProcess;
let url: string;
let client: RungentClient;

async function serve(mode: "holding" | "finishing", port = "0"): Promise<void> {
  const args = ["-m", "tests.sdk.served", join(FOLDER, "app.db"), port, mode];
  served = spawn(PYTHON, args, { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
  const [printed] = (await once(served.stdout!, "data")) as [Buffer];
  url = printed.toString().trim();
}

async function kill(): Promise<void> {
  const ended = once(served, "exit");
  served.kill("SIGKILL");
  await ended;
}

/** One tab: folds what it is delivered. */
class Tab {
  state: RungentState = initialRungentState;
  readonly events: RungentEvent[] = [];
  readonly #seen: (event: RungentEvent) => void;

  constructor(seen: (event: RungentEvent) => void = () => undefined) {
    this.#seen = seen;
  }

  readonly onEvent = (event: RungentEvent): void => {
    this.events.push(event);
    this.state = reduceRungentEvent(this.state, event);
    this.#seen(event);
  };
}

async function replayed(runId: string): Promise<RungentState> {
  return (await client.listEvents(runId)).reduce(reduceRungentEvent, initialRungentState);
}

beforeAll(async () => {
  await serve("holding");
  client = new RungentClient({ baseUrl: `${url}/api`, headers: { Authorization: "Bearer ada" } });
});

afterAll(async () => {
  await kill();
  rmSync(FOLDER, { recursive: true });
});

test("a conversation is held, listed, named and read again", async () => {
  const session = await client.createSession({ resource: { trip_id: "tokyo" } });
  const tab = new Tab();
  await client.run(session.id, "Hello", { onEvent: tab.onEvent });
  expect(tab.state).toMatchObject({ status: "completed", content: "Done.", text: "" });
  await client.setSessionTitle(session.id, "Tōkyō");
  const { items } = await client.listSessions();
  expect(items[0]).toMatchObject({
    id: session.id,
    title: "Tōkyō",
    resource: { trip_id: "tokyo" },
  });
  const { messages } = await client.getSession(session.id);
  expect(messages.map(({ role, content }) => [role, content])).toEqual([
    ["user", "Hello"],
    ["assistant", "Done."],
  ]);
});

test("lists come in pages", async () => {
  for (let made = 0; made < 2; made += 1) await client.createSession();
  const first = await client.listSessions({ limit: 2 });
  const second = await client.listSessions({ limit: 2, cursor: first.next });
  expect([first.items.length, second.items.length, second.next]).toEqual([2, 1, null]);
});

test("a question is answered in one tab and seen in the other", async () => {
  const session = await client.createSession();
  const run = await client.createRun(session.id, "ask", { idempotencyKey: "once" });
  expect(await client.createRun(session.id, "ask", { idempotencyKey: "once" })).toMatchObject({
    run_id: run.run_id,
  });
  const [asking, watching] = [new Tab(), new Tab()];
  const { onEvent } = asking;
  const watched = client.streamRunEvents(run.run_id, 0, { ...watching, until: "terminal" });
  await client.streamRunEvents(run.run_id, 0, { onEvent });
  const question = asking.state.interaction!;
  expect(asking.state.status).toBe("waiting_input");
  const refused = client.respond(run.run_id, question.id, { selected: ["paris"] });
  await expect(refused).rejects.toMatchObject({
    status: 422,
    detail: { reason: "unknown_option", path: ["selected", 0] },
  });
  const answer = choiceAnswer(question, { selected: ["oslo"] });
  await client.respond(run.run_id, question.id, answer, { onEvent });
  await watched;
  expect(asking.state).toMatchObject({ status: "completed", content: "Noted." });
  expect(watching.state).toEqual(asking.state);
  expect(await replayed(run.run_id)).toEqual(asking.state);
});

test("a run is cancelled while it writes", async () => {
  const session = await client.createSession();
  const { run_id } = await client.createRun(session.id, "hold");
  const tab = new Tab((event) => {
    if (event.type === "message.delta") void client.cancel(run_id);
  });
  await client.streamRunEvents(run_id, 0, tab);
  expect(tab.state).toMatchObject({ status: "cancelled", text: "One moment" });
  expect(await client.cancel(run_id)).toMatchObject({ status: "cancelled" });
});

test("refusals are typed", async () => {
  const nobody = new RungentClient({ baseUrl: `${url}/api` });
  await expect(nobody.listSessions()).rejects.toMatchObject({ code: "unauthenticated" });
  const missing = await client.getSession("ses_0").catch((error: unknown) => error);
  expect(missing).toBeInstanceOf(RungentApiError);
  expect(missing).toMatchObject({ status: 404, code: "not_found" });
});

test("a killed server costs no event, and a failed run is tried again", async () => {
  const session = await client.createSession();
  const failed = new Tab();
  const { run_id: failing } = await client.run(session.id, "fail", failed);
  expect(failed.state).toMatchObject({ status: "failed", retryable: true });

  const { run_id } = await client.createRun((await client.createSession()).id, "hold");
  let restarted: Promise<void> | undefined;
  const tab = new Tab((event) => {
    if (event.type !== "message.delta" || restarted !== undefined) return;
    restarted = kill().then(() => serve("finishing", new URL(url).port));
  });
  await client.streamRunEvents(run_id, 0, { ...tab, maxReconnects: 8 });
  await restarted;
  expect(tab.state).toMatchObject({ status: "completed", content: "Done." });
  expect(tab.state.activities[0]).toMatchObject({ kind: "model", retryReason: "worker_lost" });
  expect(tab.events.map(({ seq }) => seq)).toEqual(tab.events.map((_, index) => index + 1));
  expect(await replayed(run_id)).toEqual(tab.state);

  const retried = await client.retry(failing);
  expect(retried.retried_from).toBe(failing);
  const again = new Tab();
  await client.streamRunEvents(retried.run_id, 0, again);
  expect(again.state.status).toBe("completed");
  const { items } = await client.listRuns(session.id);
  expect(items.map(({ status }) => status)).toEqual(["failed", "completed"]);
});
