/** A question for data: simple controls for a flat answer, an editor for every other. */

import type { Control } from "./control.js";
import { controlName, fieldsOf, readData } from "./data-answer.js";
import { DataField } from "./data-fields.js";
import { QuestionForm } from "./form-frame.js";
import { JsonEditor } from "./json-editor.js";

export const DataQuestion: Control = (props) => {
  const { asked, busy, refusal, submit } = props;
  const fields = fieldsOf(asked);
  if (fields === null) return <JsonEditor {...props} />;
  return (
    <QuestionForm busy={busy} label="Answer" onSubmit={(_, form) => submit(readData(fields, form))}>
      {fields.map((one, index) => (
        <DataField
          key={one.name}
          one={one}
          name={controlName(index)}
          refusal={refusal?.path[0] === one.name ? refusal : null}
        />
      ))}
    </QuestionForm>
  );
};
