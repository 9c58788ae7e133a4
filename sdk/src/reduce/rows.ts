/** The timeline: rows are found by kind and id, opened once, and settled in place. */

import type { ActivityRow, RowStatus } from "../state.js";

type Rows = readonly ActivityRow[];

/** The rows with this one in the place of its predecessor, or at the end. */
export function put(rows: Rows, row: ActivityRow): Rows {
  const index = rows.findLastIndex((known) => known.kind === row.kind && known.id === row.id);
  return index < 0 ? [...rows, row] : rows.with(index, row);
}

/** The row of a kind with an id. */
export function find<K extends ActivityRow["kind"]>(
  rows: Rows,
  kind: K,
  id: string,
): Extract<ActivityRow, { kind: K }> | undefined {
  const found = rows.findLast((row) => row.kind === kind && row.id === id);
  return found as Extract<ActivityRow, { kind: K }> | undefined;
}

/** The rows once the run has ended: what still ran gets this status. */
export function settle(rows: Rows, status: Exclude<RowStatus, "running">): Rows {
  if (rows.every((row) => row.status !== "running")) return rows;
  return rows.map((row) => (row.status === "running" ? settled(row, status) : row));
}

function settled(row: ActivityRow, status: Exclude<RowStatus, "running">): ActivityRow {
  if (row.kind !== "progress") return { ...row, status };
  return { ...row, status: status === "cancelled" ? "failed" : status };
}
