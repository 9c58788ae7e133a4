/** The list of conversations. */

import type { Session } from "@rungent/sdk";
import { client } from "./connection.js";
import { Observable } from "./observable.js";
import { onTabs, tellTabs } from "./tabs.js";
import { TRIP_ID } from "./trip.js";

const TITLE_LENGTH = 60;
const PAGE = 50;
// What the server lists at once.
const MOST = 500;

class Sessions extends Observable {
  /** Last used first; null before they were loaded. */
  items: readonly Session[] | null = null;
  /** Whether there are older ones. */
  more = false;
  #limit = PAGE;

  constructor() {
    super();
    onTabs(() => void this.refresh());
  }

  async refresh(): Promise<void> {
    try {
      const { items, next } = await client.listSessions({ limit: this.#limit });
      this.items = items;
      this.more = next !== null && this.#limit < MOST;
      this.changed();
    } catch {
      // The connection says so; what is shown stays.
    }
  }

  async showMore(): Promise<void> {
    this.#limit = Math.min(this.#limit * 2, MOST);
    await this.refresh();
  }

  /** A new conversation about the trip, named after its first message. */
  async create(text: string): Promise<Session> {
    const session = await client.createSession({
      title: titleOf(text),
      resource: { trip_id: TRIP_ID },
    });
    this.items = [session, ...(this.items ?? [])];
    this.changed();
    return session;
  }

  async rename(sessionId: string, title: string): Promise<void> {
    const named = await client.setSessionTitle(sessionId, title.trim() || null);
    this.items = this.items?.map((known) => (known.id === sessionId ? named : known)) ?? null;
    this.changed();
    tellTabs(sessionId);
  }

  titleOf(sessionId: string | null): string {
    return this.items?.find(({ id }) => id === sessionId)?.title ?? "Untitled conversation";
  }
}

function titleOf(text: string): string {
  const line = text.trim().split(/\s+/).join(" ");
  const letters = [...line];
  return letters.length <= TITLE_LENGTH ? line : `${letters.slice(0, TITLE_LENGTH - 1).join("")}…`;
}

export const sessions = new Sessions();
