import { expect, it } from "vitest";
import { chatBatchSchema, chatSchema, feedbackSchema, scoreSchema } from "./wire.ts";

const many = <T>(value: T): T[] => Array<T>(20_000).fill(value);

it.each([
  ["requests", feedbackSchema, { requests: many({}) }, ["requests", 0, "prompt"]],
  ["messages", chatSchema, { model: "m", messages: many({}) }, ["messages", 0, "role"]],
  ["conversations", chatBatchSchema, { model: "m", messages: many([{}]) }, ["messages", 0, 0, "role"]],
  [
    "token ids",
    scoreSchema,
    { model: "m", prompt: "", completion_token_ids: many(-1) },
    ["completion_token_ids", 0],
  ],
])("reports only the first of many wrong %s", (_, schema, body, path) => {
  const { error } = schema.safeParse(body);
  expect(error?.issues).toHaveLength(1);
  expect(error?.issues[0]?.path).toEqual(path);
});

it("accepts any JSON as a draft, unchanged", () => {
  const draft = [{ a: [null, 1, "b"] }, many([])];
  const body = { draft, requests: [{ prompt: "a", response: "b", feedback: "c" }] };
  expect(feedbackSchema.parse(body)).toEqual(body);
});
