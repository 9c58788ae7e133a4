/** One HTTP request: address, headers, body, and the error of an answer that is not ok. */

import { apiError } from "./errors.js";

/** Headers of every request, or a function that gives them: call by call, sync or async. */
export type HeadersSource = HeadersInit | (() => HeadersInit | Promise<HeadersInit>);

export interface RungentClientOptions {
  /** Where the routes are mounted, such as `/api/assistant` or `https://host/api`. */
  readonly baseUrl: string;
  /** Used instead of the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** Who asks, for example an `Authorization` header. A function is called for each request. */
  readonly headers?: HeadersSource;
  /** As for `fetch`: `"include"` sends cookies to another origin. */
  readonly credentials?: RequestCredentials;
}

/** What one request sends. */
export interface Outgoing {
  readonly method?: "GET" | "POST" | "PATCH";
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

export class Requests {
  readonly #options: RungentClientOptions;
  readonly #base: string;

  constructor(options: RungentClientOptions) {
    this.#options = options;
    this.#base = options.baseUrl.replace(/\/+$/, "");
  }

  /** The response, which is ok. Throws RungentApiError, or what `fetch` throws. */
  async send(path: string, outgoing: Outgoing = {}): Promise<Response> {
    const { method = "GET", body, signal } = outgoing;
    const headers = await this.#headers(outgoing);
    const send = this.#options.fetch ?? globalThis.fetch;
    const { credentials } = this.#options;
    const response = await send(`${this.#base}${path}${search(outgoing.query)}`, {
      method,
      headers,
      cache: "no-store",
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(credentials === undefined ? {} : { credentials }),
      ...(signal === undefined ? {} : { signal }),
    });
    if (!response.ok) throw await apiError(response);
    return response;
  }

  /** The JSON body of a response. */
  async json<T>(path: string, outgoing: Outgoing = {}): Promise<T> {
    const response = await this.send(path, outgoing);
    return (await response.json()) as T;
  }

  /** One page of a list, and the query of the next one. */
  async page<T>(path: string, outgoing: Outgoing): Promise<[readonly T[], URLSearchParams | null]> {
    const response = await this.send(path, outgoing);
    return [(await response.json()) as T[], nextQuery(response.headers.get("Link"))];
  }

  async #headers(outgoing: Outgoing): Promise<Headers> {
    const source = this.#options.headers;
    const headers = new Headers(typeof source === "function" ? await source() : source);
    if (outgoing.body !== undefined) headers.set("Content-Type", "application/json");
    for (const [name, value] of Object.entries(outgoing.headers ?? {})) headers.set(name, value);
    return headers;
  }
}

function search(query: Outgoing["query"]): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  const params = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return given.length === 0 ? "" : `?${params}`;
}

/** The query of the next page. Only that: the path may look different behind a proxy. */
function nextQuery(link: string | null): URLSearchParams | null {
  const found = /<[^>?]*\?([^>]*)>\s*;\s*rel="?next"?/.exec(link ?? "");
  return found === null ? null : new URLSearchParams(found[1]);
}
