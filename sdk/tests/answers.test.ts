import { describe, expect, test } from "vitest";
import {
  type ChoiceAnswer,
  checkAnswer,
  choiceAnswer,
  formAnswers,
  type Interaction,
  RungentAnswerError,
} from "../src/index.js";
import table from "./answers.json" with { type: "json" };

const QUESTIONS = table.questions as unknown as Interaction[];

interface Case {
  readonly question: number;
  readonly value: unknown;
  readonly normalised?: unknown;
  readonly reason?: string;
  readonly path?: unknown;
}

function outcome(check: () => unknown): object {
  try {
    return { normalised: check() };
  } catch (error) {
    if (!(error instanceof RungentAnswerError)) throw error;
    return { reason: error.reason, path: error.path };
  }
}

type Check = (question: Interaction, value: unknown) => unknown;

function answered({ question, value }: Case, check: Check = checkAnswer): object {
  return outcome(() => check(QUESTIONS[question]!, value));
}

describe("what the server makes of an answer", () => {
  test.each((table.cases as Case[]).map((made, index) => [index, made] as const))(
    "case %i",
    (_, made) => {
      const { question, value, ...expected } = made;
      expect(answered({ question, value })).toEqual(expected);
    },
  );

  test("holds for every reason there is, and for answers that pass", () => {
    const reasons = new Set((table.cases as Case[]).map(({ reason }) => reason));
    expect(reasons.size).toBe(13);
  });
});

const choice = QUESTIONS.find(({ kind, allow_skip }) => kind === "choice" && allow_skip)!;
const form = QUESTIONS.find(({ kind }) => kind === "form")!;

test("the helpers give what the check gives", () => {
  for (const made of table.cases as Case[]) {
    const question = QUESTIONS[made.question]!;
    if (question.kind === "choice") {
      const { question: index, value, ...expected } = made;
      const check: Check = (asked, given) => choiceAnswer(asked, given as ChoiceAnswer);
      expect(answered({ question: index, value }, check)).toEqual(expected);
    }
  }
  const answers = { why: " so ", which: { selected: ["a"] }, more: undefined, own: null };
  expect(formAnswers(form, answers)).toEqual({
    answers: { why: "so", which: { selected: ["a"] } },
  });
  expect(choiceAnswer(choice, { selected: ["b", "a"], custom: " own " })).toEqual({
    selected: ["a", "b"],
    custom: "own",
  });
});

test("an answer to a kind of a later version is left to the server", () => {
  const question = { ...choice, kind: "data" };
  expect(checkAnswer(question, { file: 3 })).toEqual({ file: 3 });
});

test("names that every object has are questions and answers like others", () => {
  const question = { ...form, questions: form.questions.slice(0, 1) };
  const asked = { ...question, questions: [{ ...question.questions[0]!, id: "constructor" }] };
  expect(outcome(() => formAnswers(asked, {}))).toEqual({
    reason: "missing_answer",
    path: ["answers", "constructor"],
  });
  expect(formAnswers(asked, { constructor: "x" } as never)).toEqual({
    answers: { constructor: "x" },
  });
});
