/** The timeline of a run: one row for each thing that happens. */

import type { ActivityRow } from "@rungent/sdk";
import { describeRow } from "./words.js";

const SIGNS = { running: "", completed: "✓", failed: "✕", cancelled: "–" } as const;

export function Timeline({ rows }: { readonly rows: readonly ActivityRow[] }) {
  return (
    <ol class="timeline" aria-label="Steps" aria-live="off">
      {rows.map((row) => (
        <Row key={`${row.kind} ${row.id}`} row={row} />
      ))}
    </ol>
  );
}

function Row({ row }: { readonly row: ActivityRow }) {
  const { label, detail, status } = describeRow(row);
  const effect = row.kind === "tool" && row.effect !== "read" ? row.effect : null;
  return (
    <li class={`row ${row.kind}`} data-status={row.status}>
      <span class="sign" aria-hidden="true">
        {SIGNS[row.status]}
      </span>
      <span class="row-text">
        <span class="row-label">{label}</span>
        {effect !== null && <span class={`effect ${effect}`}>{effect}</span>}
        <span class="unseen">, {status}</span>
        {detail !== "" && <span class="row-detail">{detail}</span>}
      </span>
    </li>
  );
}
