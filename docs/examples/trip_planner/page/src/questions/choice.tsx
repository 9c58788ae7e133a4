/** A choice: one or several options, own words, or a skip. Sent only by its button. */

import type { Control } from "./control.js";
import { ChoiceField, readChoice } from "./fields.js";
import { QuestionForm } from "./form-frame.js";

const NAME = "answer";

export const ChoiceQuestion: Control = ({ asked, busy, refusal, submit }) => (
  <QuestionForm
    busy={busy}
    label="Answer"
    onSubmit={(form) => submit(readChoice(form, NAME, asked))}
    extra={
      asked.allow_skip && (
        <button type="button" onClick={() => submit({ selected: [], skipped: true })}>
          {asked.skip_label ?? "Skip"}
        </button>
      )
    }
  >
    <ChoiceField
      name={NAME}
      label={asked.prompt}
      unseen
      choice={asked}
      error={refusal?.message ?? null}
    />
  </QuestionForm>
);
