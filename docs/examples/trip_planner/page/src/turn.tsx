/** One message with what the assistant made of it. */

import { useState } from "preact/hooks";
import type { Conversation } from "./conversation.js";
import { goOn } from "./focus.js";
import { Markdown } from "./markdown.js";
import { QuestionCard } from "./questions/card.js";
import { Timeline } from "./timeline.js";
import { type Attempt, isActive, type Turn } from "./turns.js";

interface TurnProps {
  readonly conversation: Conversation;
  readonly turn: Turn;
  readonly last: boolean;
}

export function TurnView({ conversation, turn, last }: TurnProps) {
  const final = turn.attempts.at(-1);
  return (
    <article class="turn">
      <h3 class="unseen">You said</h3>
      <p class="said" dir="auto">
        {turn.text}
      </p>
      {turn.attempts.map((attempt) => (
        <AttemptView
          key={attempt.runId}
          conversation={conversation}
          attempt={attempt}
          last={last && attempt === final}
        />
      ))}
    </article>
  );
}

interface AttemptProps {
  readonly conversation: Conversation;
  readonly attempt: Attempt;
  /** The newest run of the conversation: the only one that can be tried again. */
  readonly last: boolean;
}

function AttemptView({ conversation, attempt, last }: AttemptProps) {
  const { runId, state, problem } = attempt;
  const text = state.content ?? state.text;
  return (
    <div class="attempt">
      <h3 class="unseen">The assistant</h3>
      <Steps conversation={conversation} attempt={attempt} open={last} />
      {text !== "" && <Markdown text={text} growing={state.content === null} />}
      {state.interaction !== null && (
        <QuestionCard
          key={state.interaction.id}
          conversation={conversation}
          runId={runId}
          asked={state.interaction}
        />
      )}
      {state.status === "failed" && (
        <Failure conversation={conversation} attempt={attempt} last={last} />
      )}
      {state.status === "cancelled" && <p class="note">You stopped this run.</p>}
      {problem !== null && (
        <p class="note bad" role="alert">
          {problem}{" "}
          <button type="button" class="link" onClick={() => conversation.reconnect()}>
            Connect again
          </button>
        </p>
      )}
    </div>
  );
}

interface StepsProps {
  readonly conversation: Conversation;
  readonly attempt: Attempt;
  readonly open: boolean;
}

function Steps({ conversation, attempt, open }: StepsProps) {
  const { runId, state, replayed } = attempt;
  const count = state.activities.length;
  // An attempt that was watched stays as it was when it ended: nothing jumps.
  const [opened, setOpened] = useState(open);
  return (
    <details
      class="steps"
      open={opened}
      onToggle={({ currentTarget }) => {
        setOpened(currentTarget.open);
        if (currentTarget.open && !replayed && !isActive(attempt)) void conversation.replay(runId);
      }}
    >
      <summary>
        {count === 0 ? "Steps" : `${count} ${count === 1 ? "step" : "steps"}`}
        {state.usage !== null && <span class="usage"> · {state.usage.total_tokens} tokens</span>}
      </summary>
      <Timeline rows={state.activities} />
    </details>
  );
}

function Failure({ conversation, attempt, last }: AttemptProps) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const again = async () => {
    setBusy(true);
    await conversation.retry(attempt.runId).catch((error: Error) => setProblem(error.message));
    setBusy(false);
    goOn();
  };
  const { error, errorCode, retryable } = attempt.state;
  return (
    <div class="failure" role={last ? "alert" : undefined}>
      <p>
        <strong>This did not work.</strong> {error}
        {errorCode !== null && <code class="code">{errorCode}</code>}
      </p>
      {last && retryable && (
        <button type="button" disabled={busy} onClick={() => void again()}>
          Try again
        </button>
      )}
      {problem !== null && <p class="field-error">{problem}</p>}
    </div>
  );
}
