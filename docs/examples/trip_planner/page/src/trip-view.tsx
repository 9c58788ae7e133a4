/** The trip, day by day, as it is now. */

import { useObserved } from "./observable.js";
import { trip } from "./trip.js";

export function TripView() {
  useObserved(trip);
  const { shown } = trip;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
    <aside class="trip" aria-labelledby="trip-title" tabIndex={0}>
      <h2 id="trip-title" dir="auto">
        {shown?.title ?? "Your trip"}
      </h2>
      {shown !== null && (
        <>
          <p class="revision">Revision {shown.revision}</p>
          {shown.budget !== null && <p class="budget">Budget: {shown.budget}</p>}
          {shown.days.map((day) => (
            <section key={day.number} class="day">
              <h3>
                Day {day.number} <span class="mode">{day.transport}</span>
              </h3>
              {day.places.length === 0 && <p class="empty">Nothing planned yet.</p>}
              <ol>
                {day.places.map(({ name, transport }) => (
                  <Seat
                    key={`${name} ${shown.revision}`}
                    name={name}
                    way={transport === day.transport ? null : transport}
                  />
                ))}
              </ol>
            </section>
          ))}
          <section class="day">
            <h3>Unplanned</h3>
            {shown.unplanned.length === 0 && <p class="empty">Nothing is left over.</p>}
            <ul>
              {shown.unplanned.map((name) => (
                <Seat key={`${name} ${shown.revision}`} name={name} way={null} />
              ))}
            </ul>
          </section>
        </>
      )}
    </aside>
  );
}

function Seat({ name, way }: { readonly name: string; readonly way: string | null }) {
  return (
    <li class={trip.moved.has(name) ? "moved" : undefined}>
      <span dir="auto">{name}</span>
      {way !== null && <span class="mode">by {way}</span>}
    </li>
  );
}
