/** One field of a flat answer: a control for its type, with what helps to fill it in. */

import type { FieldDescription } from "@rungent/sdk";
import type { Refusal } from "./control.js";
import { isSwitch } from "./data-answer.js";
import { FieldError } from "./fields.js";

interface DataFieldProps {
  readonly one: FieldDescription;
  /** Unique within the form. */
  readonly name: string;
  readonly refusal: Refusal | null;
}

// From here on a text gets more than a line.
const LONG = 120;

/** Formats for which browsers have a control whose value is what JSON wants. */
const INPUTS: Readonly<Record<string, "date" | "time">> = { date: "date", time: "time" };
const FORMS: Readonly<Record<string, string>> = {
  "date-time": "such as 2030-01-31T09:30:00Z",
  uri: "an address such as https://example.org/",
};

const EXPECTED: Readonly<Record<string, string>> = {
  integer: "a whole number",
  number: "a number",
  date: "a whole date",
  time: "a whole time",
};

export function DataField({ one, name, refusal }: DataFieldProps) {
  const hint = hintOf(one);
  const box = one.type === "boolean" && isSwitch(one);
  const described = [hint && `${name}-hint`, refusal && `${name}-error`].filter(Boolean).join(" ");
  const common: Common = {
    id: name,
    name,
    required: !mayBeBlank(one) && !box,
    "aria-invalid": refusal !== null,
    ...(described ? { "aria-describedby": described } : {}),
  };
  return (
    <div class="field">
      {box ? (
        <label class="option" for={name}>
          <input type="checkbox" {...common} defaultChecked={one.default === true} />
          <span dir="auto">{one.title}</span>
        </label>
      ) : (
        <>
          <label class="field-label" for={name} dir="auto">
            {one.title} {mayBeBlank(one) && <span class="optional">optional</span>}
          </label>
          <Value one={one} common={common} />
        </>
      )}
      {hint && (
        <p class="field-hint" id={`${name}-hint`} dir="auto">
          {hint}
        </p>
      )}
      <FieldError name={name} error={refusal && <Reason refusal={explained(one, refusal)} />} />
    </div>
  );
}

/** Whether nothing is an answer, too. A choice with a default always has one. */
function mayBeBlank(one: FieldDescription): boolean {
  const picked = one.type === "choice" && one.default !== undefined;
  return one.nullable || (!one.required && !picked);
}

/** The refusal in words of the field, where the type says more. */
function explained(one: FieldDescription, refusal: Refusal): Refusal {
  const expected = EXPECTED[one.format ?? ""] ?? EXPECTED[one.type];
  const mismatch = refusal.reason === "type_mismatch" && expected !== undefined;
  return mismatch ? { ...refusal, message: `Please fill in ${expected}.` } : refusal;
}

/** The words of a refusal, and its code for whoever looks it up. */
export function Reason({ refusal }: { readonly refusal: Refusal }) {
  return (
    <>
      {refusal.message} {refusal.reason && <code>{refusal.reason}</code>}
    </>
  );
}

/** What every control of a field has. */
interface Common {
  readonly id: string;
  readonly name: string;
  readonly required: boolean;
  readonly "aria-invalid": boolean;
  readonly "aria-describedby"?: string;
}

interface ValueProps {
  readonly one: FieldDescription;
  readonly common: Common;
}

function Value({ one, common }: ValueProps) {
  const start = one.default === null || one.default === undefined ? "" : String(one.default);
  switch (one.type) {
    case "boolean":
      return (
        <Select
          {...{ one, common, start }}
          options={[
            ["true", "Yes"],
            ["false", "No"],
          ]}
        />
      );
    case "choice": {
      const options = one.options.map((value, index) => [String(index), words(value)] as const);
      const chosen = one.options.indexOf(one.default as string | number | boolean);
      return <Select {...{ one, common, options }} start={chosen < 0 ? "" : String(chosen)} />;
    }
    case "text":
      return <TextValue {...{ one, common, start }} />;
    default: {
      // No number input: that one hides what it cannot read.
      const keys = one.type === "integer" && (one.minimum ?? -1) >= 0 ? "numeric" : "text";
      return <input {...common} type="text" inputMode={keys} defaultValue={start} />;
    }
  }
}

function TextValue({ one, common, start }: ValueProps & { readonly start: string }) {
  const type = INPUTS[one.format ?? ""];
  if (type !== undefined) return <input {...common} type={type} defaultValue={start} />;
  if (one.format === undefined && (one.maxLength ?? LONG) >= LONG) {
    return <textarea {...common} rows={2} dir="auto" defaultValue={start} />;
  }
  const keys = one.format === "email" ? "email" : "text";
  return <input {...common} type="text" inputMode={keys} dir="auto" defaultValue={start} />;
}

interface SelectProps extends ValueProps {
  readonly options: readonly (readonly [value: string, label: string])[];
  readonly start: string;
}

function Select({ one, common, options, start }: SelectProps) {
  return (
    <select {...common}>
      {(start === "" || one.nullable) && (
        <option value="">{mayBeBlank(one) ? "No answer" : "Choose…"}</option>
      )}
      {options.map(([value, label]) => (
        <option key={value} value={value} selected={value === start}>
          {label}
        </option>
      ))}
    </select>
  );
}

function hintOf(one: FieldDescription): string {
  const { minimum, maximum, minLength, maxLength } = one;
  const hints = [
    one.description,
    FORMS[one.format ?? ""],
    range(minimum, maximum),
    range(minLength, maxLength, " characters"),
  ];
  return hints.filter(Boolean).join("; ");
}

function range(low: number | undefined, high: number | undefined, unit = ""): string {
  const [least, most] = [low, high].map((limit) => limit?.toLocaleString("en"));
  if (least !== undefined && most !== undefined) return `from ${least} to ${most}${unit}`;
  if (least !== undefined) return `at least ${least}${unit}`;
  return most === undefined ? "" : `at most ${most}${unit}`;
}

function words(value: string | number | boolean): string {
  if (typeof value === "boolean") return value ? "Yes" : "No";
  return String(value);
}
