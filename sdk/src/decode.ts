/** The bytes of a run's event stream become events and signals. No I/O. */

import { SseDecoder, type SseFrame } from "./sse.js";
import type { RungentEvent } from "./types.js";

/** What arrived: an event, or a remark of the server about the stream itself. */
export type StreamItem =
  | { readonly kind: "event"; readonly event: RungentEvent }
  | { readonly kind: "retry"; readonly milliseconds: number }
  /** The server is about to stop; the stream goes on elsewhere. */
  | { readonly kind: "reconnect" };

export class EventDecoder {
  readonly #frames = new SseDecoder();

  /** The items that these bytes complete. Throws SyntaxError for an event that is none. */
  feed(bytes: Uint8Array): StreamItem[] {
    const items: StreamItem[] = [];
    for (const frame of this.#frames.feed(bytes)) {
      const item = decoded(frame);
      if (item !== null) items.push(item);
    }
    return items;
  }
}

function decoded(frame: SseFrame): StreamItem | null {
  switch (frame.kind) {
    case "event":
      return { kind: "event", event: parseEvent(frame.data) };
    case "retry":
      return frame;
    case "comment":
      return frame.text.trim() === "reconnect" ? { kind: "reconnect" } : null;
  }
}

/**
 * The event in one line of JSON, as in a stream or a stored log.
 *
 * Types and keys that this version does not know are kept. Throws SyntaxError if it is no event.
 */
export function parseEvent(text: string): RungentEvent {
  const value: unknown = JSON.parse(text);
  if (!isEvent(value)) throw new SyntaxError("this is no event of a run");
  return value;
}

function isEvent(value: unknown): value is RungentEvent {
  if (typeof value !== "object" || value === null) return false;
  const { seq, type, run_id, data } = value as Record<string, unknown>;
  return (
    Number.isInteger(seq) &&
    typeof type === "string" &&
    typeof run_id === "string" &&
    typeof data === "object" &&
    data !== null
  );
}
