/** The consent to one frozen call. The prompt above says what it would do. */

import type { Control } from "./control.js";

export const ApprovalQuestion: Control = ({ asked, busy, submit }) => {
  const destructive = asked.tool?.effect === "destructive";
  const [approve, reject] = ["approve", "reject"].map(
    (id) => asked.options.find((option) => option.id === id)?.label,
  );
  return (
    <div class="buttons">
      <button type="button" disabled={busy} onClick={() => submit("reject")}>
        {reject ?? "Reject"}
      </button>
      <button
        type="button"
        class={destructive ? "danger" : "primary"}
        disabled={busy}
        onClick={() => submit("approve")}
      >
        {approve ?? "Approve"}
      </button>
    </div>
  );
};
