/** A kind of question that this page does not know: said plainly, with what the server sent. */

import type { Control } from "./control.js";

export const UnknownQuestion: Control = ({ asked }) => (
  <div class="unknown">
    <p>
      This page cannot show a question of the kind “{asked.kind}”. Another client can answer it, or
      you can stop the run.
    </p>
    <details>
      <summary>What was asked</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
      <pre tabIndex={0}>{JSON.stringify(asked, null, 2)}</pre>
    </details>
  </div>
);
