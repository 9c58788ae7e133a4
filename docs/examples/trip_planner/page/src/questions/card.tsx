/** The card of the pending question: what is asked, its control, and what was refused. */

import { checkAnswer, type Interaction, RungentAnswerError, RungentApiError } from "@rungent/sdk";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Conversation } from "../conversation.js";
import { goOn, isFree } from "../focus.js";
import { NOWHERE, type Refusal } from "./control.js";
import { controlFor } from "./controls.js";
import { hasDataPlace } from "./data-answer.js";

interface CardProps {
  readonly conversation: Conversation;
  readonly runId: string;
  readonly asked: Interaction;
}

export function QuestionCard({ conversation, runId, asked }: CardProps) {
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  // Two clicks come before the first is drawn.
  const sending = useRef(false);
  const card = useRef<HTMLElement>(null);

  useEffect(() => {
    if (isFree()) card.current?.focus({ preventScroll: true });
    card.current?.scrollIntoView({ block: "nearest" });
    const shown = card.current;
    return () => {
      if (shown?.contains(document.activeElement)) goOn();
    };
  }, []);

  useEffect(() => {
    const wrong = card.current?.querySelector('[aria-invalid="true"], fieldset[aria-describedby]');
    const field = wrong?.matches("fieldset") ? wrong.querySelector("input") : wrong;
    if (field instanceof HTMLElement) field.focus();
  }, [refusal]);

  const submit = async (value: unknown) => {
    if (sending.current) return;
    sending.current = true;
    setBusy(true);
    try {
      await conversation.respond(runId, asked.id, checkAnswer(asked, value));
      setRefusal(null);
      goOn();
      // Stays busy: the next event takes the card away.
    } catch (error) {
      sending.current = false;
      setBusy(false);
      setRefusal(refusalOf(error));
    }
  };

  const Control = controlFor(asked.kind);
  const approval = asked.kind === "approval";
  return (
    <section
      class={`card ${asked.tool?.effect === "destructive" ? "destructive" : ""}`}
      ref={card}
      tabIndex={-1}
      aria-labelledby={`title-${asked.id}`}
      aria-describedby={`prompt-${asked.id}`}
    >
      <h3 id={`title-${asked.id}`}>
        {approval ? `Approve: ${asked.tool?.title ?? "operation"}` : "Question"}
        {asked.tool && <span class={`effect ${asked.tool.effect}`}>{asked.tool.effect}</span>}
      </h3>
      <p class="prompt" dir="auto" id={`prompt-${asked.id}`}>
        {asked.prompt}
      </p>
      <Control asked={asked} busy={busy} refusal={refusal} submit={(v) => void submit(v)} />
      {refusal !== null && !hasPlace(asked, refusal) && (
        <p class="field-error" role="alert">
          {refusal.message}
        </p>
      )}
    </section>
  );
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof RungentAnswerError) {
    const { message, reason, path } = error;
    return { message, reason, path };
  }
  if (error instanceof RungentApiError) {
    const { message, detail } = error;
    const path = Array.isArray(detail.path) ? detail.path : [];
    const reason = typeof detail.reason === "string" ? { reason: detail.reason } : {};
    return { message, path, ...reason };
  }
  return { message: error instanceof Error ? error.message : String(error), path: NOWHERE };
}

/** Whether a field shows the refusal. */
function hasPlace(asked: Interaction, refusal: Refusal): boolean {
  const { path } = refusal;
  if (asked.kind === "form") return asked.questions.some(({ id }) => path[1] === id);
  if (asked.kind === "data") return hasDataPlace(asked, refusal);
  return path !== NOWHERE && (asked.kind === "text" || asked.kind === "choice");
}
