import { fakeModel } from "@periodic-eval/core/testing";
import { expect, it } from "vitest";
import { answer } from "./answers.ts";
import { entropies, score } from "./scores.ts";
import type { ScoredBody } from "./wire.ts";

const { signal } = new AbortController();
const unread = () => {
  throw new Error("the text was tokenized");
};
const plain = fakeModel();
const model = {
  ...plain,
  contextLength: 4,
  tokenizer: { ...plain.tokenizer, encode: unread, renderChat: unread },
  generate: unread,
  logLikelihoods: unread,
};
const long = "x".repeat(64 * 4 + 1);
const say = (content: string) => [{ role: "user" as const, content }];

it.each<[string, () => Promise<unknown>]>([
  ["a chat", () => answer(model, { model: "m", messages: say(long) }, { signal, now: new Date(0) })],
  [
    "template variables",
    () =>
      answer(
        model,
        { model: "m", messages: say("a"), chat_template_kwargs: { long } },
        {
          signal,
          now: new Date(0),
        },
      ),
  ],
  [
    "a scored conversation",
    () => score(model, [{ messages: say(long), completion: "a" }] as ScoredBody[], signal),
  ],
  ["a scored prompt", () => score(model, [{ prompt: long, completion: "a" }] as ScoredBody[], signal)],
  ["a completion", () => score(model, [{ prompt: "a", completion: long }] as ScoredBody[], signal)],
  ["a text for entropies", () => entropies(model, [long], signal)],
])("refuses %s of more than 64 characters per token before it is tokenized", async (_, send) => {
  await expect(send()).rejects.toMatchObject({ status: 413, message: "prompt_too_long" });
});
