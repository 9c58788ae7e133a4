/**
 * Questions for data: a flat JSON Schema as the fields of a form, and a first check of an answer.
 *
 * The server checks every answer by the model that made the schema; this only spares a request.
 * Pure.
 */

import { RungentAnswerError } from "./errors.js";
import type { JsonValue } from "./types.js";

type Schema = Readonly<Record<string, unknown>>;
type Scalar = string | number | boolean;

/** One field of a flat answer: what a simple control needs. */
export interface FieldDescription {
  readonly name: string;
  /** The schema's title, else the name in words. */
  readonly title: string;
  readonly description?: string;
  readonly type: "text" | "number" | "integer" | "boolean" | "choice";
  readonly required: boolean;
  /** Whether null is an answer, too. */
  readonly nullable: boolean;
  /** The values of a choice; empty for other types. */
  readonly options: readonly Scalar[];
  readonly default?: JsonValue;
  /** `date`, `date-time`, `email` and the like, where the schema says so. */
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

/**
 * The fields of an object whose properties are texts, numbers, booleans or choices, in their
 * order; null for every other schema, which needs an editor of its own.
 */
export function schemaForm(schema: Schema): readonly FieldDescription[] | null {
  const properties = schema.properties;
  if (schema.type !== "object" || !isObject(properties)) return null;
  if (isObject(schema.additionalProperties) || schema.additionalProperties === true) return null;
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const fields: FieldDescription[] = [];
  for (const [name, property] of Object.entries(properties)) {
    const made = isObject(property) ? field(schema, name, property, required.has(name)) : null;
    if (made === null) return null;
    fields.push(made);
  }
  return fields;
}

/**
 * The answer to a question for data, without fields that are undefined.
 *
 * Throws RungentAnswerError for a broken rule of a flat schema; an answer to any other schema
 * comes back as it is.
 */
export function dataAnswer(schema: Schema, value: unknown): JsonValue {
  const fields = schemaForm(schema);
  if (fields === null) return value as JsonValue;
  if (!isObject(value)) throw refused("type_mismatch", []);
  const given = Object.entries(value).filter(([, answer]) => answer !== undefined);
  const answers = new Map(given);
  for (const one of fields) {
    if (answers.has(one.name)) checkField(one, answers.get(one.name));
    else if (one.required) throw refused("missing_answer", [one.name]);
  }
  const unknown = given.find(([name]) => !fields.some((one) => one.name === name));
  if (unknown !== undefined && schema.additionalProperties === false) {
    throw refused("unknown_field", [unknown[0]]);
  }
  return Object.fromEntries(given) as JsonValue;
}

function field(
  schema: Schema,
  name: string,
  property: Schema,
  required: boolean,
): FieldDescription | null {
  const { rules, nullable } = nonNull(schema, property);
  if (rules === null) return null;
  const options = choices(rules);
  const type = options === null ? plainType(rules.type) : "choice";
  if (type === null || "pattern" in rules) return null;
  const text = { ...rules, ...property };
  return {
    name,
    title: typeof text.title === "string" ? text.title : words(name),
    type,
    required,
    nullable,
    options: options ?? [],
    ...("default" in property ? { default: property.default as JsonValue } : {}),
    ...picked(text, ["description", "format"], "string"),
    ...picked(rules, ["minLength", "maxLength", "minimum", "maximum"], "number"),
  };
}

/** The rules of a property without the alternative null, references followed once. */
function nonNull(schema: Schema, property: Schema): { rules: Schema | null; nullable: boolean } {
  const variants = Array.isArray(property.anyOf) ? (property.anyOf as unknown[]) : [property];
  const others = variants.filter((one) => !isObject(one) || one.type !== "null");
  const [first] = others;
  const single = others.length === 1 && isObject(first) ? resolved(schema, first) : null;
  return { rules: single, nullable: others.length < variants.length };
}

function resolved(schema: Schema, rules: Schema): Schema | null {
  if (typeof rules.$ref !== "string") return rules;
  const name = rules.$ref.replace(/^#\/\$defs\//, "");
  const found = isObject(schema.$defs) ? schema.$defs[name] : undefined;
  return isObject(found) ? found : null;
}

function choices(rules: Schema): readonly Scalar[] | null {
  const values = "const" in rules ? [rules.const] : rules.enum;
  if (!Array.isArray(values) || !values.every(isScalar)) return null;
  return values;
}

function plainType(type: unknown): FieldDescription["type"] | null {
  if (type === "string") return "text";
  return type === "number" || type === "integer" || type === "boolean" ? type : null;
}

function checkField(one: FieldDescription, answer: unknown): void {
  const path = [one.name];
  if (answer === null && one.nullable) return;
  if (one.type === "choice") {
    if (!one.options.some((option) => option === answer)) throw refused("invalid_value", path);
  } else if (one.type === "text") {
    if (typeof answer !== "string") throw refused("type_mismatch", path);
    const length = [...answer].length;
    if (length > (one.maxLength ?? Number.POSITIVE_INFINITY)) throw refused("too_long", path);
    if (length < (one.minLength ?? 0)) throw refused("invalid_value", path);
  } else if (one.type === "boolean") {
    if (typeof answer !== "boolean") throw refused("type_mismatch", path);
  } else {
    checkNumber(one, answer, path);
  }
}

function checkNumber(one: FieldDescription, answer: unknown, path: readonly string[]): void {
  const whole = one.type !== "integer" || Number.isInteger(answer);
  if (typeof answer !== "number" || !Number.isFinite(answer) || !whole) {
    throw refused("type_mismatch", path);
  }
  const low = one.minimum ?? Number.NEGATIVE_INFINITY;
  const high = one.maximum ?? Number.POSITIVE_INFINITY;
  if (answer < low || answer > high) throw refused("invalid_value", path);
}

const MESSAGES = {
  missing_answer: "A required field is missing.",
  unknown_field: "There is no such field.",
  type_mismatch: "The value has another type.",
  too_long: "The value is too long.",
  invalid_value: "The value is not valid.",
} as const;

function refused(reason: keyof typeof MESSAGES, path: readonly string[]): RungentAnswerError {
  return new RungentAnswerError(reason, MESSAGES[reason], path);
}

function words(name: string): string {
  const text = name.replace(/[_-]+/g, " ").trim() || name;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function picked(rules: Schema, keys: readonly string[], type: string): Record<string, never> {
  const found = keys.filter((key) => typeof rules[key] === type).map((key) => [key, rules[key]]);
  return Object.fromEntries(found) as Record<string, never>;
}

function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isScalar(value: unknown): value is Scalar {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}
