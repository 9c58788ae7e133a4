/** A question that is answered in words. */

import type { Control } from "./control.js";
import { readText, TextField } from "./fields.js";
import { QuestionForm } from "./form-frame.js";

const NAME = "answer";

export const TextQuestion: Control = ({ busy, refusal, submit }) => (
  <QuestionForm busy={busy} label="Answer" onSubmit={(form) => submit(readText(form, NAME))}>
    <TextField name={NAME} label="Your answer" error={refusal?.message ?? null} />
  </QuestionForm>
);
