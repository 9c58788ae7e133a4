/**
 * Which control asks which kind of question.
 *
 * To teach the page another kind, write a `Control` and name it here. Its `submit` takes any
 * value: `checkAnswer` of the SDK passes on what it does not know, and the server decides.
 */

import { ApprovalQuestion } from "./approval.js";
import { ChoiceQuestion } from "./choice.js";
import type { Control } from "./control.js";
import { DataQuestion } from "./data.js";
import { FormQuestion } from "./form.js";
import { TextQuestion } from "./text.js";
import { UnknownQuestion } from "./unknown.js";

const CONTROLS: ReadonlyMap<string, Control> = new Map([
  ["text", TextQuestion],
  ["choice", ChoiceQuestion],
  ["form", FormQuestion],
  ["approval", ApprovalQuestion],
  ["data", DataQuestion],
]);

export function controlFor(kind: string): Control {
  return CONTROLS.get(kind) ?? UnknownQuestion;
}
