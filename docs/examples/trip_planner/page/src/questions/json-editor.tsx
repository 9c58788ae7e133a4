/** An answer of any shape, written as JSON. */

import { useRef, useState } from "preact/hooks";
import { type Control, NOWHERE } from "./control.js";
import { Reason } from "./data-fields.js";
import { FieldError, readText } from "./fields.js";
import { QuestionForm } from "./form-frame.js";

const NAME = "answer";

export const JsonEditor: Control = ({ asked, busy, refusal, submit }) => {
  const [unreadable, setUnreadable] = useState<string | null>(null);
  const editor = useRef<HTMLTextAreaElement>(null);
  const { title, description } = asked.schema ?? {};
  const read = (form: FormData) => {
    let value: unknown;
    try {
      value = JSON.parse(readText(form, NAME));
    } catch (error) {
      setUnreadable(`This is no JSON: ${error instanceof Error ? error.message : String(error)}`);
      editor.current?.focus();
      return;
    }
    setUnreadable(null);
    submit(value);
  };
  const refused = refusal?.path === NOWHERE ? null : refusal;
  const wrong = unreadable !== null || refused !== null;
  return (
    <QuestionForm busy={busy} label="Answer" onSubmit={read}>
      <div class="field">
        <label class="field-label" for={NAME} dir="auto">
          {typeof title === "string" ? `${title}, as JSON` : "Your answer, as JSON"}
        </label>
        <textarea
          ref={editor}
          class="json"
          id={NAME}
          name={NAME}
          rows={6}
          spellcheck={false}
          autocapitalize="off"
          aria-invalid={wrong}
          aria-describedby={`${NAME}-hint ${NAME}-error`}
        />
        <p class="field-hint" id={`${NAME}-hint`} dir="auto">
          {typeof description === "string" ? description : "See below what fits."}
        </p>
        <FieldError
          name={NAME}
          error={
            unreadable ??
            (refused && (
              <>
                {refused.path.length > 0 && `At ${refused.path.join(" → ")}: `}
                <Reason refusal={refused} />
              </>
            ))
          }
        />
      </div>
      <details class="fits">
        <summary>What fits</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
        <pre tabIndex={0}>{JSON.stringify(asked.schema, null, 2)}</pre>
      </details>
    </QuestionForm>
  );
};
