/** The client, and whether the server can be reached. */

import { RungentClient } from "@rungent/sdk";
import { Observable } from "./observable.js";

/** Whether requests get through, learnt from the requests that are made anyway. */
class Connection extends Observable {
  lost = false;

  readonly fetch: typeof fetch = async (input, init) => {
    try {
      const response = await fetch(input, init);
      this.#note(false);
      return response;
    } catch (error) {
      if (!init?.signal?.aborted) this.#note(true);
      throw error;
    }
  };

  constructor() {
    super();
    addEventListener("offline", () => this.#note(true));
  }

  #note(lost: boolean): void {
    if (this.lost === lost) return;
    this.lost = lost;
    this.changed();
  }
}

export const connection = new Connection();

export const client = new RungentClient({ baseUrl: "/api/assistant", fetch: connection.fetch });
