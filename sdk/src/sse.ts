/**
 * The bytes of an event stream become frames, however the bytes were cut. No I/O.
 *
 * Lines end with CR, LF or CRLF and with nothing else; a frame that was not finished by a blank
 * line is never handed out.
 */

/** One event of the stream. */
export interface SseEvent {
  readonly kind: "event";
  /** The `data` lines, joined with LF. */
  readonly data: string;
  readonly id?: string;
  readonly event?: string;
}

/** A comment, without the colon and one blank after it. */
export interface SseComment {
  readonly kind: "comment";
  readonly text: string;
}

/** The wait before a reconnection that the server asks for, in milliseconds. */
export interface SseRetry {
  readonly kind: "retry";
  readonly milliseconds: number;
}

export type SseFrame = SseEvent | SseComment | SseRetry;

export class SseDecoder {
  readonly #text = new TextDecoder();
  #line = "";
  #afterReturn = false;
  #data: string[] = [];
  #id: string | undefined;
  #event = "";

  /** The frames that these bytes complete. */
  feed(bytes: Uint8Array): SseFrame[] {
    let text = this.#text.decode(bytes, { stream: true });
    if (text === "") return [];
    // A CR ends its line at once; the LF that may follow in the next chunk belongs to it.
    if (this.#afterReturn && text.startsWith("\n")) text = text.slice(1);
    this.#afterReturn = text === "" ? false : text.endsWith("\r");
    const [first = "", ...rest] = text.split(/\r\n|\r|\n/);
    const frames: SseFrame[] = [];
    this.#line += first;
    for (const begun of rest) {
      this.#take(this.#line, frames);
      this.#line = begun;
    }
    return frames;
  }

  #take(line: string, frames: SseFrame[]): void {
    if (line === "") {
      this.#dispatch(frames);
      return;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const start = line[colon + 1] === " " ? colon + 2 : colon + 1;
    const value = colon < 0 ? "" : line.slice(start);
    switch (name) {
      case "":
        frames.push({ kind: "comment", text: value });
        break;
      case "data":
        this.#data.push(value);
        break;
      case "event":
        this.#event = value;
        break;
      case "id":
        if (!value.includes("\0")) this.#id = value;
        break;
      case "retry":
        if (/^\d+$/.test(value)) frames.push({ kind: "retry", milliseconds: Number(value) });
        break;
    }
  }

  #dispatch(frames: SseFrame[]): void {
    if (this.#data.length > 0) {
      frames.push({
        kind: "event",
        data: this.#data.join("\n"),
        ...(this.#id === undefined ? {} : { id: this.#id }),
        ...(this.#event === "" ? {} : { event: this.#event }),
      });
    }
    this.#data = [];
    this.#id = undefined;
    this.#event = "";
  }
}
