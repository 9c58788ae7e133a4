/** Where a message is written, and the line above it that says how the run stands. */

import { useRef, useState } from "preact/hooks";
import { connection } from "./connection.js";
import type { Conversation } from "./conversation.js";
import { COMPOSER, goOn } from "./focus.js";
import { useObserved } from "./observable.js";
import { isActive } from "./turns.js";
import { describeRun } from "./words.js";

interface ComposerProps {
  readonly conversation: Conversation;
  readonly send: (text: string) => Promise<boolean>;
  readonly sending: boolean;
  readonly problem: string | null;
}

export function Composer({ conversation, send, sending, problem }: ComposerProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const { attempt } = conversation;
  const asks = attempt?.state.status === "waiting_input";
  const busy = isActive(attempt) && !asks;
  const submit = async () => {
    const text = field.current?.value ?? "";
    if (busy || text.trim() === "") return;
    if ((await send(text)) && field.current?.value === text) field.current.value = "";
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <div class="composer-column">
        <StatusLine conversation={conversation} />
        {problem !== null && (
          <p class="field-error" role="alert">
            {problem}
          </p>
        )}
        <div class="compose">
          <label class="unseen" for={COMPOSER}>
            Message
          </label>
          <textarea
            id={COMPOSER}
            ref={field}
            rows={1}
            dir="auto"
            readOnly={sending}
            placeholder={asks ? "Or something else instead…" : "Change the trip…"}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
              event.preventDefault();
              void submit();
            }}
          />
          <button type="submit" class="primary" disabled={busy || sending}>
            Send
          </button>
        </div>
      </div>
    </form>
  );
}

function StatusLine({ conversation }: { readonly conversation: Conversation }) {
  useObserved(connection);
  const [problem, setProblem] = useState<string | null>(null);
  const { attempt } = conversation;
  const active = isActive(attempt);
  const stop = async (runId: string) => {
    setProblem(null);
    await conversation.cancel(runId).catch((error: Error) => setProblem(error.message));
    goOn();
  };
  const said = attempt === null ? "" : describeRun(attempt.state);
  return (
    <div class="status">
      <p role="status" class={connection.lost ? "bad" : ""} data-active={active}>
        {connection.lost ? "Connection lost. It comes back by itself." : (problem ?? said)}
      </p>
      {connection.lost && (
        <button type="button" class="small" onClick={() => conversation.reconnect()}>
          Try now
        </button>
      )}
      {active && attempt !== null && (
        <button type="button" class="small" onClick={() => void stop(attempt.runId)}>
          Stop
        </button>
      )}
    </div>
  );
}
