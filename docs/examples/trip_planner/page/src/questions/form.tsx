/** Several questions in one card, sent together once. */

import type { Control, Refusal } from "./control.js";
import { ChoiceField, readChoice, readText, TextField } from "./fields.js";
import { QuestionForm } from "./form-frame.js";

export const FormQuestion: Control = ({ asked, busy, refusal, submit }) => {
  const { questions } = asked;
  const read = (form: FormData) => {
    const answers = questions.map((question, index) => [
      question.id,
      question.kind === "text"
        ? readText(form, nameOf(index))
        : readChoice(form, nameOf(index), question),
    ]);
    submit({ answers: Object.fromEntries(answers) });
  };
  return (
    <QuestionForm busy={busy} label="Send answers" onSubmit={read}>
      {questions.map((question, index) => {
        const field = {
          name: nameOf(index),
          label: question.prompt,
          optional: !question.required,
          error: errorOf(refusal, question.id),
        };
        return question.kind === "text" ? (
          <TextField key={question.id} {...field} />
        ) : (
          <ChoiceField key={question.id} {...field} choice={question} />
        );
      })}
    </QuestionForm>
  );
};

function nameOf(index: number): string {
  return `question-${index}`;
}

function errorOf(refusal: Refusal | null, id: string): string | null {
  return refusal !== null && refusal.path[0] === "answers" && refusal.path[1] === id
    ? refusal.message
    : null;
}
