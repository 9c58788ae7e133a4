/** A `fetch` that plays prepared responses and notes the requests. */

import type { RungentEvent } from "../src/index.js";
import { frames } from "./logs.js";

export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: unknown;
  readonly init: RequestInit;
}

type Reply = Response | Error | ((seen: Seen) => Response | Promise<Response>);

export function server(...replies: Reply[]): { fetch: typeof fetch; seen: Seen[] } {
  const seen: Seen[] = [];
  const play = async (input: URL | RequestInfo, init: RequestInit = {}): Promise<Response> => {
    init.signal?.throwIfAborted();
    const body = init.body === undefined ? undefined : JSON.parse(String(init.body));
    const { method = "GET" } = init;
    seen.push({ method, url: String(input), headers: new Headers(init.headers), body, init });
    const reply = replies.shift();
    if (reply === undefined) throw new TypeError("nobody listens");
    if (reply instanceof Error) throw reply;
    return typeof reply === "function" ? reply(seen.at(-1)!) : reply;
  };
  return { fetch: play as typeof fetch, seen };
}

export function json(body: unknown, status = 200, headers: HeadersInit = {}): Response {
  return Response.json(body, { status, headers });
}

/** A stream with these events that ends with a remark, breaks, or ends cleanly. */
export function stream(
  events: readonly RungentEvent[],
  end: "clean" | "break" | "drain" = "clean",
) {
  const remark = end === "drain" ? ": reconnect\n\n" : "";
  const bytes = new TextEncoder().encode(`retry: 1000\n\n${frames(events)}${remark}`);
  let sent = false;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (!sent) controller.enqueue(bytes);
      else if (end === "break") controller.error(new TypeError("terminated"));
      else controller.close();
      sent = true;
    },
  });
  return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
}

/** A stream with these events that then stays open until the request is aborted. */
export function open(events: readonly RungentEvent[]) {
  return ({ init }: Seen): Response => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(frames(events)));
        init.signal?.addEventListener("abort", () => controller.error(init.signal?.reason));
      },
    });
    return new Response(body);
  };
}
