import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EventDecoder, SseDecoder, type SseFrame } from "../src/index.js";
import { frames, log } from "./logs.js";

const utf8 = new TextEncoder();

function fed(...chunks: Uint8Array[]): SseFrame[] {
  const decoder = new SseDecoder();
  return chunks.flatMap((chunk) => decoder.feed(chunk));
}

function split(text: string, ...cuts: number[]): Uint8Array[] {
  const bytes = utf8.encode(text);
  const ends = [...cuts, bytes.length];
  return ends.map((end, index) => bytes.slice(index === 0 ? 0 : ends[index - 1], end));
}

/** What an independent parser reads. It gives no frame for an event without data either. */
function reference(text: string): SseFrame[] {
  const found: SseFrame[] = [];
  const parser = createParser({
    onEvent: ({ data, id, event }) => {
      found.push({
        kind: "event",
        data,
        ...(id === undefined ? {} : { id }),
        ...(event === undefined ? {} : { event }),
      });
    },
    onComment: (comment) => found.push({ kind: "comment", text: comment }),
    onRetry: (milliseconds) => found.push({ kind: "retry", milliseconds }),
  });
  // It waits for what may follow a last CR; as part of CRLF it is certain.
  parser.feed(text.endsWith("\r") ? `${text}\n` : text);
  return found;
}

const SAMPLES: Record<string, string> = {
  "a stream of the server": `retry: 1000\n\n: keep-alive\n\n${frames(log("answer_in_pieces").events.slice(0, 4))}: reconnect\n\n`,
  CRLF: "id: 1\r\ndata: a\r\n\r\ndata: b\r\n\r\n",
  CR: "id: 1\rdata: a\r\rdata: b\r\r",
  "mixed ends": "data: a\r\ndata: b\rdata: c\n\n\r\n\rdata: d\n\r",
  "several data lines": "data: a\ndata:\ndata:  b\ndata\n\n",
  "no blank after the colon": "data:{}\nid:7\nevent:x\n\n",
  "text that other readers split": "data: a\u2028b\u0085c\u000cd\u000be\n\n",
  "characters of one to four bytes": "data: aé東👩‍👩‍👧\n\n",
  "unknown fields and odd lines": "wind: 3\n:\n::x\n data: y\nretry: 1s\nretry: 20\ndata: z\n\n",
  "an id that is none": "id: a\0b\ndata: x\n\n",
  "an event without data": "event: x\nid: 3\n\ndata: y\n\n",
  "an event that is not finished": "data: a\n\ndata: b\n",
};

describe.each(Object.entries(SAMPLES))("%s", (_, text) => {
  const whole = fed(utf8.encode(text));

  test("is read as an independent parser reads it", () => {
    expect(whole).toEqual(reference(text));
  });

  test("is the same however it is cut in two or three", () => {
    const size = utf8.encode(text).length;
    for (let cut = 0; cut <= size; cut += 1) {
      expect(fed(...split(text, cut))).toEqual(whole);
    }
    for (let first = 0; first <= Math.min(size, 60); first += 1) {
      for (let second = first; second <= Math.min(size, 60); second += 1) {
        expect(fed(...split(text, first, second))).toEqual(whole);
      }
    }
  });

  test("is the same byte by byte, with empty chunks between", () => {
    const bytes = [...utf8.encode(text)].flatMap((byte) => [Uint8Array.of(byte), Uint8Array.of()]);
    expect(fed(...bytes)).toEqual(whole);
  });
});

test("one byte order mark at the very beginning is no text", () => {
  const text = "\ufeffdata: \ufeffa\n\n";
  for (let cut = 0; cut <= 3; cut += 1) {
    expect(fed(...split(text, cut))).toEqual([{ kind: "event", data: "\ufeffa" }]);
  }
});

test("any lines are read as an independent parser reads them, however they are cut", () => {
  const name = fc.constantFrom("data", "id", "event", "retry", "", "dat", " data", "x");
  const value = fc.oneof(
    fc.constantFrom("", " ", "  x", "12", "-1", ":"),
    fc.string({ unit: "grapheme", maxLength: 5 }),
  );
  const line = fc
    .oneof(
      fc.tuple(name, fc.constantFrom(":", ": ", ""), value).map((parts) => parts.join("")),
      fc.constant(""),
    )
    .map((made) => made.replaceAll(/[\r\n\0\ufeff]/g, ""));
  const lines = fc.array(fc.tuple(line, fc.constantFrom("\n", "\r", "\r\n")), { maxLength: 12 });
  const text = lines.map((made) => made.flat().join(""));
  fc.assert(
    fc.property(text, fc.array(fc.nat(80), { maxLength: 4 }), (made, cuts) => {
      const size = utf8.encode(made).length;
      const sorted = cuts.map((cut) => Math.min(cut, size)).sort((a, b) => a - b);
      expect(fed(...split(made, ...sorted))).toEqual(reference(made));
    }),
    { numRuns: 300 },
  );
});

test("events come out typed, with the remarks of the server between", () => {
  const decoder = new EventDecoder();
  const { events } = log("answer_in_pieces");
  const stream = `retry: 20\n\n: keep-alive\n\n${frames(events)}: reconnect\n\n`;
  const items = split(stream, 50, 300).flatMap((chunk) => decoder.feed(chunk));
  expect(items).toEqual([
    { kind: "retry", milliseconds: 20 },
    ...events.map((event) => ({ kind: "event", event })),
    { kind: "reconnect" },
  ]);
});

test.each(["{", "[]", "null", "3", '{"seq":1}', '{"seq":"1","type":"x","run_id":"r","data":{}}'])(
  "%s is no event",
  (data) => {
    const decoder = new EventDecoder();
    expect(() => decoder.feed(utf8.encode(`data: ${data}\n\n`))).toThrow(SyntaxError);
  },
);
