/** The logs that the Python runtime wrote, and the states it says they add up to. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEvent, type RungentEvent, type RungentState } from "../src/index.js";

const FOLDER = join(fileURLToPath(import.meta.url), "../../../tests/golden");

export interface GoldenLog {
  readonly name: string;
  readonly text: string;
  readonly events: readonly RungentEvent[];
  /** A digest of the state after every event, the initial one first. */
  readonly digests: readonly string[];
  /** Some states in full, by the number of events before them. */
  readonly states: Readonly<Record<string, RungentState>>;
}

export const GOLDEN_LOGS: readonly GoldenLog[] = readdirSync(FOLDER)
  .filter((file) => file.endsWith(".jsonl"))
  .map((file) => {
    const name = file.replace(".jsonl", "");
    const text = readFileSync(join(FOLDER, file), "utf8");
    const expected = readFileSync(join(FOLDER, `${name}.state.json`), "utf8");
    return { name, text, events: lines(text).map(parseEvent), ...JSON.parse(expected) };
  });

export function log(name: string): GoldenLog {
  const found = GOLDEN_LOGS.find((golden) => golden.name === name);
  if (found === undefined) throw new Error(`there is no log ${name}`);
  return found;
}

function lines(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}

/** The events as the server sends them. */
export function frames(events: readonly RungentEvent[]): string {
  return events.map((event) => `id: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}
