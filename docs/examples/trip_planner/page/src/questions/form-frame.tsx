/** The frame of every question that is answered with fields: one form, one button to send it. */

import type { ComponentChildren } from "preact";

interface QuestionFormProps {
  readonly busy: boolean;
  /** What the button says. */
  readonly label: string;
  readonly onSubmit: (values: FormData, form: HTMLFormElement) => void;
  /** More buttons. */
  readonly extra?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function QuestionForm({ busy, label, onSubmit, extra, children }: QuestionFormProps) {
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit(new FormData(event.currentTarget), event.currentTarget);
      }}
    >
      <fieldset class="fields" disabled={busy}>
        {children}
        <div class="buttons">
          {extra}
          <button type="submit" class="primary">
            {label}
          </button>
        </div>
      </fieldset>
    </form>
  );
}
