/** Things that change and say so, and a hook that draws them again. */

import { useEffect, useReducer } from "preact/hooks";

export class Observable {
  readonly #listeners = new Set<() => void>();

  /** Calls `listener` after each change, until the function that this gives is called. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  protected changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** Draws the component again whenever one of these changes. */
export function useObserved(...observed: readonly Observable[]): void {
  const [, draw] = useReducer<number, void>((drawn) => drawn + 1, 0);
  useEffect(() => {
    // Whatever changed between drawing and subscribing.
    draw();
    const ends = observed.map((one) => one.subscribe(() => draw()));
    return () => {
      for (const end of ends) end();
    };
  }, observed);
}
