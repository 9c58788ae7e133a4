import { describe, expect, it } from "vitest";
import { checkAnswer, dataAnswer, RungentAnswerError, schemaForm } from "../src/index.js";

const flat = {
  type: "object",
  properties: {
    approved: { type: "boolean" },
    note: { anyOf: [{ type: "string", maxLength: 5 }, { type: "null" }], default: null },
    day: { type: "string", format: "date", title: "Which day?", description: "Of the trip." },
    seats: { type: "integer", minimum: 1, maximum: 9 },
    meal: { enum: ["fish", "rice"], type: "string", default: "rice" },
    pace: { $ref: "#/$defs/Pace" },
    only: { const: "x" },
  },
  required: ["approved"],
  additionalProperties: false,
  $defs: { Pace: { enum: [1, 2], type: "integer" } },
};

describe("schemaForm", () => {
  it("describes each field of a flat object in order", () => {
    const fields = schemaForm(flat) ?? [];
    expect(fields.map(({ name, type, required }) => [name, type, required])).toEqual([
      ["approved", "boolean", true],
      ["note", "text", false],
      ["day", "text", false],
      ["seats", "integer", false],
      ["meal", "choice", false],
      ["pace", "choice", false],
      ["only", "choice", false],
    ]);
    expect(fields[1]).toEqual({
      name: "note",
      title: "Note",
      type: "text",
      required: false,
      nullable: true,
      options: [],
      default: null,
      maxLength: 5,
    });
    expect(fields[2]).toMatchObject({
      title: "Which day?",
      description: "Of the trip.",
      format: "date",
    });
    expect(fields[5]?.options).toEqual([1, 2]);
  });

  it.each([
    [{}],
    [{ type: "array", items: { type: "string" } }],
    [{ type: "object" }],
    [{ type: "object", properties: { a: { type: "array" } } }],
    [{ type: "object", properties: { a: { type: "object", properties: {} } } }],
    [{ type: "object", properties: { a: { anyOf: [{ type: "string" }, { type: "integer" }] } } }],
    [{ type: "object", properties: { a: { $ref: "#/$defs/Gone" } } }],
    [{ type: "object", properties: { a: { type: "string", pattern: "^a" } } }],
    [{ type: "object", properties: { a: true } }],
    [{ type: "object", properties: {}, additionalProperties: { type: "string" } }],
  ])("leaves %j to an editor", (schema) => {
    expect(schemaForm(schema)).toBeNull();
    expect(dataAnswer(schema, { a: ["anything"] })).toEqual({ a: ["anything"] });
  });
});

describe("dataAnswer", () => {
  it("gives the answer without what is undefined", () => {
    const answer = { approved: true, note: null, seats: 3, meal: "fish", pace: undefined };
    const { pace: _, ...sent } = answer;
    expect(dataAnswer(flat, answer)).toEqual(sent);
  });

  it.each([
    [null, "type_mismatch", []],
    [[], "type_mismatch", []],
    [{}, "missing_answer", ["approved"]],
    [{ approved: 1 }, "type_mismatch", ["approved"]],
    [{ approved: null }, "type_mismatch", ["approved"]],
    [{ approved: true, note: "123456" }, "too_long", ["note"]],
    [{ approved: true, note: 1 }, "type_mismatch", ["note"]],
    [{ approved: true, seats: 1.5 }, "type_mismatch", ["seats"]],
    [{ approved: true, seats: 10 }, "invalid_value", ["seats"]],
    [{ approved: true, meal: "beef" }, "invalid_value", ["meal"]],
    [{ approved: true, by: "me" }, "unknown_field", ["by"]],
  ])("refuses %j as %s", (value, reason, path) => {
    const question = {
      kind: "data",
      schema: flat,
      options: [],
      questions: [],
      multiple: false,
      allow_custom: false,
      allow_skip: false,
    } as const;
    try {
      checkAnswer(question, value);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(RungentAnswerError);
      expect(error).toMatchObject({ reason, path });
    }
  });
});
