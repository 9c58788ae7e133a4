/** The trip as the application's own route shows it; asked again when a tool has changed it. */

import type { RungentEvent } from "@rungent/sdk";
import { connection } from "./connection.js";
import { Observable } from "./observable.js";

export const TRIP_ID = "tokyo";

export interface Place {
  readonly name: string;
  readonly transport: string;
}

export interface Day {
  readonly number: number;
  readonly transport: string;
  readonly places: readonly Place[];
}

export interface TripShown {
  readonly title: string;
  readonly revision: number;
  readonly days: readonly Day[];
  readonly unplanned: readonly string[];
  /** In words; null before it is known. */
  readonly budget: string | null;
}

class Trip extends Observable {
  shown: TripShown | null = null;
  /** What stands elsewhere since the last revision: names of places. */
  moved: ReadonlySet<string> = new Set();
  #asking: Promise<void> | null = null;
  #again = false;

  /** Looks at an event of a run: tools tell the revision that they made. */
  notice({ type, data }: RungentEvent): void {
    if (type !== "tool.completed" || data.public === undefined) return;
    const { resource, revision } = Object(data.public) as Record<string, unknown>;
    if (resource === "trip" && Number(revision) > (this.shown?.revision ?? 0)) this.refresh();
  }

  /** Asks for the trip; calls meanwhile lead to one more request and no more. */
  refresh(): void {
    this.#again = this.#asking !== null;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
      if (this.#again) this.refresh();
    });
  }

  async #ask(): Promise<void> {
    try {
      const response = await connection.fetch("/trip", { cache: "no-store" });
      if (!response.ok) return;
      const trip = (await response.json()) as TripShown;
      const before = this.shown === null ? null : seats(this.shown);
      const now = [...seats(trip)];
      if (trip.revision === this.shown?.revision) return;
      this.moved = new Set(
        before ? now.filter(([n, s]) => before.get(n) !== s).map(([n]) => n) : [],
      );
      this.shown = trip;
      this.changed();
    } catch {
      // The connection says so; what is shown stays.
    }
  }
}

/** Where each place stands. */
function seats(trip: TripShown): ReadonlyMap<string, string> {
  const planned = trip.days.flatMap((day) =>
    day.places.map(({ name }, index) => [name, `${day.number}.${index}`] as const),
  );
  return new Map([...planned, ...trip.unplanned.map((name) => [name, "unplanned"] as const)]);
}

export const trip = new Trip();
