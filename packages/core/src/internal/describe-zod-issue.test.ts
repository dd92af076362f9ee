import { expect, it } from "vitest";
import { z } from "zod";
import { toldIssue } from "./describe-zod-issue.ts";

const told = (schema: z.ZodType, value: unknown) => {
  const { path, expected } = toldIssue(schema.safeParse(value).error!, value);
  return [path.join("."), expected];
};

it.each<[z.ZodType, unknown, string]>([
  [z.string().min(1), "", "a text that is not empty"],
  [z.string().max(3), "four", "a text of 3 characters or less"],
  [z.array(z.number()).min(1), [], "a list that is not empty"],
  [z.array(z.number()).max(3), [1, 2, 3, 4], "a list of 3 or less"],
  [z.tuple([z.number(), z.number()]), [1], "a list of 2"],
  [z.tuple([z.number(), z.number()]), 3, "a list"],
  [z.number().gt(0), 0, "a number above 0"],
  [z.int(), 1.5, "a whole number"],
  [z.enum(["a", "b"]), "c", '"a" or "b"'],
  [z.union([z.string(), z.literal(3)]), 4, "a text or 3"],
])("%#: %j is told as one wants it", (schema, value, expected) => {
  expect(told(schema, value)).toEqual(["", expected]);
});

it("tells what a key of a map should be", () => {
  const schema = z.record(z.string().regex(/^a/, "a key that begins with a"), z.number(), "a map of numbers");
  expect(told(schema, { b: 1 })).toEqual(["b", "a key that begins with a"]);
});

it("goes into the branch of a union that a value was meant for", () => {
  const schema = z.union([z.string(), z.array(z.object({ id: z.string() }))]);
  expect(told(schema, [{ id: "a" }, { id: 3 }])).toEqual(["1.id", "a text"]);
});
