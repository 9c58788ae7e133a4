/** What the fields of a flat answer hold, as the JSON that is sent; and where a refusal belongs. */

import { type FieldDescription, type Interaction, schemaForm } from "@rungent/sdk";
import { NOWHERE, type Refusal } from "./control.js";

const NUMBER = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i;

/** The name of a field's control: own properties of a form, such as `submit`, are no names. */
export function controlName(index: number): string {
  return `field-${index}`;
}

/** The fields of a question for data; null for what needs an editor. */
export function fieldsOf(asked: Interaction): readonly FieldDescription[] | null {
  return schemaForm(asked.schema ?? {});
}

/** The answer in a form. What cannot be read goes on as another type, to be refused at its field. */
export function readData(fields: readonly FieldDescription[], form: HTMLFormElement): object {
  const texts = new FormData(form);
  const given = fields.map((one, index) => {
    const name = controlName(index);
    const control = form.elements.namedItem(name);
    // Half a date has no text: it would pass for a blank one.
    const unfinished = control instanceof HTMLInputElement && control.validity.badInput;
    return [one.name, unfinished ? Number.NaN : readField(one, String(texts.get(name) ?? ""))];
  });
  return Object.fromEntries(given);
}

function readField(one: FieldDescription, text: string): unknown {
  if (one.type === "boolean" && isSwitch(one)) return text !== "";
  if (one.type === "text" ? text === "" : text.trim() === "") return blank(one);
  switch (one.type) {
    case "text":
      return text;
    case "boolean":
      return text === "true";
    case "choice":
      return one.options[Number(text)];
    default:
      return readNumber(one, text.trim());
  }
}

/** What a field says that nobody filled in; undefined leaves it out. */
function blank(one: FieldDescription): unknown {
  if (one.nullable) return null;
  const cleared = one.type === "text" && typeof one.default === "string" && one.default !== "";
  return cleared ? "" : undefined;
}

function readNumber(one: FieldDescription, text: string): unknown {
  const number = NUMBER.test(text) ? Number(text) : Number.NaN;
  // A large integer would be sent as another one than was typed.
  const changed = one.type === "integer" && Math.abs(number) > Number.MAX_SAFE_INTEGER;
  return Number.isFinite(number) && !changed ? number : text;
}

/** Whether a boolean is a box to tick: without a default that would answer for somebody. */
export function isSwitch(one: FieldDescription): boolean {
  return typeof one.default === "boolean" && !one.nullable;
}

/** Whether a control of a question for data shows this refusal. */
export function hasDataPlace(asked: Interaction, { path }: Refusal): boolean {
  const fields = fieldsOf(asked);
  return fields === null ? path !== NOWHERE : fields.some(({ name }) => name === path[0]);
}
