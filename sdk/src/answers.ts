/**
 * Answers, checked before they are sent with the rules and reason codes of the server.
 *
 * The server checks again and decides; this only spares a request. Pure.
 */

import { type AnswerReason, RungentAnswerError } from "./errors.js";
import { dataAnswer } from "./schemaForm.js";
import type { Interaction } from "./state.js";
import type { JsonValue, OptionShown, QuestionShown } from "./types.js";

const TEXT_LIMIT = 4000;
const CUSTOM_LIMIT = 1000;
// What the server trims; `String.trim` differs by U+FEFF, U+0085 and U+001C to U+001F.
const BLANK =
  "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const ENDS = new RegExp(`^${BLANK}+|${BLANK}+$`, "g");

type Path = readonly (string | number)[];
type Given = Readonly<Record<string, unknown>>;

/** The answer to a choice. */
export interface ChoiceAnswer {
  readonly selected?: readonly string[];
  readonly custom?: string | null;
  readonly skipped?: boolean;
}

/** The answer to a choice in normal form. */
export type NormalChoice = {
  readonly selected: readonly string[];
  readonly custom?: string;
  readonly skipped?: true;
};

/** The answer to a form in normal form. */
export type NormalForm = {
  readonly answers: { readonly [question: string]: string | NormalChoice };
};

type Question = Pick<Interaction, "kind" | "options" | "questions" | "schema"> &
  Pick<Interaction, "multiple" | "allow_custom" | "allow_skip">;

/**
 * The normal form of an answer to any question: what `respond` takes.
 *
 * Text: the trimmed string. Approval: `"approve"` or `"reject"`. Data: the value,
 * whose defaults the server fills in. An answer to a kind that this
 * version does not know comes back as it is. Throws RungentAnswerError for the first broken rule.
 */
export function checkAnswer(question: Question, value: unknown): JsonValue {
  switch (question.kind) {
    case "text":
      return text(value, []);
    case "choice":
      return choice(question, value, []);
    case "form":
      return form(question.questions, value);
    case "approval":
      return decision(value);
    case "data":
      return dataAnswer(question.schema ?? {}, value);
    default:
      return value as JsonValue;
  }
}

/** The answer to a choice: ids of options, own words, or a skip. Throws RungentAnswerError. */
export function choiceAnswer(question: Question, answer: ChoiceAnswer): NormalChoice {
  return choice(question, answer, []);
}

/** The answers to a form by question id. Throws RungentAnswerError. */
export function formAnswers(
  question: Question,
  answers: { readonly [question: string]: string | ChoiceAnswer | null | undefined },
): NormalForm {
  const given = Object.entries(answers).filter(([, answer]) => answer !== undefined);
  return form(question.questions, { answers: Object.fromEntries(given) });
}

function refused(reason: AnswerReason, message: string, path: Path): RungentAnswerError {
  return new RungentAnswerError(reason, message, path);
}

function clean(value: string): string {
  return value.replace(/[\0\p{Cs}]/gu, "\ufffd").replace(ENDS, "");
}

function longer(value: string, limit: number): boolean {
  // Characters are code points; a string has at least as many units.
  return value.length > limit && [...value].length > limit;
}

function text(value: unknown, path: Path): string {
  if (typeof value !== "string") throw refused("type_mismatch", "A text is expected.", path);
  const answer = clean(value);
  if (answer === "") throw refused("empty_answer", "The answer is empty.", path);
  if (longer(answer, TEXT_LIMIT)) {
    throw refused("too_long", `The answer has more than ${TEXT_LIMIT} characters.`, path);
  }
  return answer;
}

interface ChoiceRules {
  readonly options: readonly OptionShown[];
  readonly multiple: boolean;
  readonly allow_custom: boolean;
  readonly allow_skip?: boolean;
}

function choice(rules: ChoiceRules, value: unknown, path: Path): NormalChoice {
  const { selected, custom, skipped } = members(value, path);
  if (skipped && !rules.allow_skip) {
    throw refused("skip_not_allowed", "This question cannot be skipped.", [...path, "skipped"]);
  }
  checkSelected(rules.options, selected, [...path, "selected"]);
  if (longer(custom, CUSTOM_LIMIT)) {
    const message = `The own answer has more than ${CUSTOM_LIMIT} characters.`;
    throw refused("too_long", message, [...path, "custom"]);
  }
  if (custom !== "" && !rules.allow_custom) {
    const message = "Only the given options can be chosen.";
    throw refused("custom_not_allowed", message, [...path, "custom"]);
  }
  const given = selected.length + (custom === "" ? 0 : 1);
  if (skipped && given > 0) {
    throw refused("skip_with_answer", "A skipped question cannot have an answer.", path);
  }
  if (given === 0 && !skipped) throw refused("empty_answer", "Nothing is selected.", path);
  if (given > 1 && !rules.multiple) {
    throw refused("too_many_answers", "Only one answer can be given.", path);
  }
  return {
    selected: rules.options.map(({ id }) => id).filter((id) => selected.includes(id)),
    ...(custom === "" ? {} : { custom }),
    ...(skipped ? { skipped } : {}),
  };
}

function checkSelected(options: readonly OptionShown[], selected: string[], path: Path): void {
  const known = new Set(options.map(({ id }) => id));
  const again = selected.findIndex((id, index) => selected.indexOf(id) < index);
  if (again >= 0)
    throw refused("duplicate_option", "An option is selected twice.", [...path, again]);
  const unknown = selected.findIndex((id) => !known.has(id));
  if (unknown >= 0) throw refused("unknown_option", "There is no such option.", [...path, unknown]);
}

/** Selected ids, trimmed own answer ("" for none) and the skip mark of a choice. */
function members(
  value: unknown,
  path: Path,
): { readonly selected: string[]; readonly custom: string; readonly skipped: boolean } {
  const answer = object(value, path);
  const selected = answer.selected ?? [];
  if (!Array.isArray(selected)) {
    throw refused("type_mismatch", "A list of option ids is expected.", [...path, "selected"]);
  }
  const ids = selected.map((chosen: unknown, index) => {
    if (typeof chosen === "string") return chosen;
    throw refused("type_mismatch", "An option id is a text.", [...path, "selected", index]);
  });
  const custom = answer.custom ?? "";
  if (typeof custom !== "string") {
    throw refused("type_mismatch", "The own answer is a text.", [...path, "custom"]);
  }
  const skipped = answer.skipped === undefined ? false : answer.skipped;
  if (typeof skipped !== "boolean") {
    throw refused("type_mismatch", "The skip mark is true or false.", [...path, "skipped"]);
  }
  return { selected: ids, custom: clean(custom), skipped };
}

function form(questions: readonly QuestionShown[], value: unknown): NormalForm {
  const body = object(value, []);
  const answers = object(body.answers === undefined ? {} : body.answers, ["answers"]);
  const unknown = Object.keys(answers).find((id) => !questions.some((asked) => asked.id === id));
  if (unknown !== undefined) {
    throw refused("unknown_question", "There is no such question.", ["answers", unknown]);
  }
  const given = (id: string): unknown => (Object.hasOwn(answers, id) ? answers[id] : null);
  const present = questions.filter((question) => !isMissing(question, given(question.id)));
  const missing = questions.find((asked) => asked.required && !present.includes(asked));
  if (missing !== undefined) {
    throw refused("missing_answer", "A required answer is missing.", ["answers", missing.id]);
  }
  const normal = present.map((question) => {
    const path = ["answers", question.id];
    const answer = given(question.id);
    return [
      question.id,
      question.kind === "text" ? text(answer, path) : choice(question, answer, path),
    ];
  });
  return { answers: Object.fromEntries(normal) };
}

function isMissing(question: QuestionShown, answer: unknown): boolean {
  if (answer === null || (typeof answer === "string" && clean(answer) === "")) return true;
  if (question.kind === "text" || typeof answer !== "object" || Array.isArray(answer)) return false;
  try {
    const { selected, custom, skipped } = members(answer, []);
    return selected.length === 0 && custom === "" && !skipped;
  } catch {
    return false; // something was given; the rules of its kind will refuse it
  }
}

function decision(value: unknown): "approve" | "reject" {
  if (value === true || value === "approve" || selectsOnly(value, "approve")) return "approve";
  if (value === false || value === "reject" || selectsOnly(value, "reject")) return "reject";
  throw refused("invalid_decision", "Either approve or reject is expected.", []);
}

function selectsOnly(value: unknown, id: string): boolean {
  if (typeof value !== "object" || value === null) return false;
  const keys = Object.keys(value);
  const { selected } = value as { selected?: unknown };
  return (
    keys.length === 1 && Array.isArray(selected) && selected.length === 1 && selected[0] === id
  );
}

function object(value: unknown, path: Path): Given {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refused("type_mismatch", "An object is expected.", path);
  }
  return value as Given;
}
