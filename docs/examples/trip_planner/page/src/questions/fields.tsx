/** Form fields for one text and one choice, and how to read them. */

import type { ChoiceAnswer, Interaction, QuestionShown } from "@rungent/sdk";
import type { ComponentChildren } from "preact";

type Choice = Pick<QuestionShown, "options" | "multiple" | "allow_custom">;
type OptionShown = Interaction["options"][number];

// No option has a blank id.
const CUSTOM = "";
const NONE = " ";

interface FieldProps {
  /** Unique within the form. */
  readonly name: string;
  readonly label: string;
  readonly error: string | null;
  readonly optional?: boolean;
  /** The label is for screen readers: it can be read elsewhere already. */
  readonly unseen?: boolean;
}

export function TextField({ name, label, error, optional = false }: FieldProps) {
  return (
    <div class="field">
      <label class="field-label" for={name}>
        {label} {optional && <span class="optional">optional</span>}
      </label>
      <textarea
        id={name}
        name={name}
        rows={2}
        maxLength={4000}
        dir="auto"
        aria-invalid={error !== null}
        aria-describedby={error === null ? undefined : `${name}-error`}
      />
      <FieldError name={name} error={error} />
    </div>
  );
}

export function ChoiceField(props: FieldProps & { readonly choice: Choice }) {
  const { name, label, error, optional = false, unseen = false, choice } = props;
  return (
    <fieldset class="field" aria-describedby={error === null ? undefined : `${name}-error`}>
      <legend class={unseen ? "unseen" : "field-label"}>
        {label} {optional && <span class="optional">optional</span>}
        {choice.multiple && <span class="optional">several are possible</span>}
      </legend>
      {choice.options.map((option, index) => (
        <Option key={option.id} id={`${name}-${index}`} {...{ name, choice, option }} />
      ))}
      {choice.allow_custom && <Custom {...{ name, choice }} />}
      {optional && !choice.multiple && (
        <label class="option">
          <input type="radio" name={name} value={NONE} /> <span>No answer</span>
        </label>
      )}
      <FieldError name={name} error={error} />
    </fieldset>
  );
}

interface OptionProps {
  readonly id: string;
  readonly name: string;
  readonly choice: Choice;
  readonly option: OptionShown;
}

function Option({ id, name, choice, option }: OptionProps) {
  const { label, description, recommended } = option;
  return (
    <label class="option" for={id}>
      <input
        id={id}
        type={choice.multiple ? "checkbox" : "radio"}
        name={name}
        value={option.id}
        aria-describedby={description ? `${id}-more` : undefined}
      />
      <span dir="auto">
        {label} {recommended && <span class="recommended">recommended</span>}
        {description && (
          <span class="option-more" id={`${id}-more`}>
            {description}
          </span>
        )}
      </span>
    </label>
  );
}

/** Own words. In a single choice they are one of the options, which typing selects. */
function Custom({ name, choice }: { readonly name: string; readonly choice: Choice }) {
  return (
    <div class="option custom">
      {!choice.multiple && (
        <input type="radio" name={name} value={CUSTOM} id={`${name}-own`} aria-label="Other" />
      )}
      <input
        type="text"
        name={`${name}-custom`}
        placeholder="Other"
        aria-label="Other, in your own words"
        maxLength={1000}
        dir="auto"
        onInput={({ currentTarget }) => {
          const own = currentTarget.form?.elements.namedItem(`${name}-own`);
          if (own instanceof HTMLInputElement) own.checked = currentTarget.value !== "";
        }}
      />
    </div>
  );
}

export function FieldError({
  name,
  error,
}: {
  readonly name: string;
  readonly error: ComponentChildren;
}) {
  return (
    <p class="field-error" id={`${name}-error`} role="alert">
      {error}
    </p>
  );
}

export function readText(form: FormData, name: string): string {
  return String(form.get(name) ?? "");
}

export function readChoice(form: FormData, name: string, choice: Choice): ChoiceAnswer {
  const values = form.getAll(name).map(String);
  const own = choice.multiple || values.includes(CUSTOM);
  const custom = own ? String(form.get(`${name}-custom`) ?? "") : "";
  return { selected: values.filter((value) => value !== CUSTOM && value !== NONE), custom };
}
