import { expect, it } from "vitest";
import * as z from "zod";
import { describeZodIssue } from "./describe-zod-issue.ts";

const described = (schema: z.ZodType, value: unknown) => {
  const { path, expected } = describeZodIssue(schema.safeParse(value).error!, value);
  return [path.join("."), expected];
};

it.each<[z.ZodType, unknown, string]>([
  [z.string().min(1), "", "a non-empty string"],
  [z.string().max(3), "four", "a string of 3 characters or less"],
  [z.array(z.number()).min(1), [], "a non-empty array"],
  [z.array(z.number()).max(3), [1, 2, 3, 4], "an array of 3 or less"],
  [z.tuple([z.number(), z.number()]), [1], "an array of 2"],
  [z.tuple([z.number(), z.number()]), 3, "an array"],
  [z.number().gt(0), 0, "a number above 0"],
  [z.int(), 1.5, "an integer"],
  [z.enum(["a", "b"]), "c", '"a" or "b"'],
  [z.union([z.string(), z.literal(3)]), 4, "a string or 3"],
  [z.number().multipleOf(2), 3, "a multiple of 2"],
  [z.custom((value) => value === 1), 3, "another value"],
])("case %#: returns the expectation of the schema for %j", (schema, value, expected) => {
  expect(described(schema, value)).toEqual(["", expected]);
});

it("describes the rule for the keys of a record", () => {
  const schema = z.record(z.string().regex(/^a/, "a key that begins with a"), z.number(), "a map of numbers");
  expect(described(schema, { b: 1 })).toEqual(["b", "a key that begins with a"]);
});

it("follows a union of objects into the one of which nothing is missing", () => {
  const schema = z.union([z.object({ text: z.string() }), z.object({ turns: z.array(z.string()) })]);
  expect(described(schema, { turns: [3] })).toEqual(["turns.0", "a string"]);
  expect(described(schema, { turns: 3 })).toEqual(["turns", "an array"]);
  expect(described(schema, {})).toEqual(["", "a string or an array"]);
});

it("follows a union into the branch that accepts the value's shape", () => {
  const schema = z.union([z.string(), z.array(z.object({ id: z.string() }))]);
  expect(described(schema, [{ id: "a" }, { id: 3 }])).toEqual(["1.id", "a string"]);
});
