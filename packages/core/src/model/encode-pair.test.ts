import { describe, expect, it } from "vitest";
import { fakeTokenizer } from "@periodic-eval/testing";
import { bulkTokenizer } from "./bulk-tokenizer.ts";
import { encodePairs, quoteContinuation, renderPrompts } from "./encode-pair.ts";
import { encodePrompts } from "./prompt-ids.ts";
import type { LogLikelihoodRequest, Prompt, Tokenizer } from "@periodic-eval/contracts";

const encodePair = async (tokenizer: Tokenizer, request: LogLikelihoodRequest) =>
  (await encodePairs(bulkTokenizer(tokenizer), [request]))[0]!;
const encodePrompt = async (tokenizer: Tokenizer, prompt: Prompt) =>
  (await renderPrompts(bulkTokenizer(tokenizer), [prompt]))[0]!.ids;

/** Merges a space with the letter after it, as byte-level BPE does; ids are positions in `vocabulary`. */
const vocabulary = ["a", "b", " a", " b", " ", ":", "ab", "<s>"];
const merging = (beginsText: boolean, ending: readonly number[] = []): Tokenizer => ({
  ...fakeTokenizer(),
  stopIds: beginsText ? [] : [7],
  encode(text, { specialTokens = true } = {}) {
    const parts = text.match(/<s>|ab| a| b|[ab: ]/g) ?? [];
    const ids = parts.map((part) => vocabulary.indexOf(part));
    return specialTokens ? [...(beginsText ? [7] : []), ...ids, ...ending] : ids;
  },
});

describe("encodePair", () => {
  const tokenizer = merging(false);

  it("moves trailing spaces of the context to the continuation", async () => {
    // "a: " + "b" → context "a:" = [0, 5], whole "a: b" = [0, 5, 3]: the space belongs to the continuation's token.
    expect(await encodePair(tokenizer, { context: { text: "a: " }, continuation: "b" })).toEqual({
      context: [0, 5],
      continuation: [3],
    });
  });

  it("takes the tokens of the joined text after the length of the context", async () => {
    // "ba" = [1, 0], "ba" + "b" = "bab" = [1, 6]: nothing is left after two tokens.
    await expect(encodePair(tokenizer, { context: { text: "ba" }, continuation: "b" })).rejects.toThrow(
      /adds no token/,
    );
    // "ba" + "bb" = [1, 6, 1]: the harness scores the last token after [1, 0].
    expect(await encodePair(tokenizer, { context: { text: "ba" }, continuation: "bb" })).toEqual({
      context: [1, 0],
      continuation: [1],
    });
  });

  it.each([
    ["Hi", 'prompt: got "Hi", expected an object with messages, text or ids.'],
    [undefined, "prompt: got undefined, expected"],
    [[{ role: "user", content: "Hi" }], "prompt: got [{"],
    [{ role: "user", content: "Hi" }, "prompt: got {"],
  ])("names the object that a prompt %j means", async (prompt, message) => {
    const remedy =
      prompt === "Hi"
        ? '{ messages: [{ role: "user", content: "Hi" }] } for a chat, or { text: "Hi" }'
        : "Write { messages: [{ role:";
    for (const call of [
      () => encodePrompt(tokenizer, prompt as never),
      () => encodePair(tokenizer, { context: prompt as never, continuation: "b" }),
      () => encodePair(tokenizer, { context: prompt as never, continuation: { ids: [1] } }),
    ]) {
      await expect(call).rejects.toThrow(message);
      await expect(call).rejects.toThrow(remedy);
    }
  });

  it("continues an unfinished assistant message", async () => {
    const fake = fakeTokenizer();
    const messages = [
      { role: "user", content: "u" },
      { role: "assistant", content: "a" },
    ];
    // The continuation does not follow a closed message and a second generation prompt.
    expect(fake.decode((await encodePair(fake, { context: { messages }, continuation: " b" })).context)).toBe(
      "<|user|>u<|end|><|assistant|>a",
    );
    expect(fake.decode(await encodePrompt(fake, { messages }))).toBe("<|user|>u<|end|><|assistant|>a");
    expect(fake.decode(await encodePrompt(fake, { messages: messages.slice(0, 1) }))).toBe(
      "<|user|>u<|end|><|assistant|>",
    );
  });

  it("uses the tokenizer's prefix token, else a stop id, for an empty context", async () => {
    expect(await encodePair(tokenizer, { context: { text: "" }, continuation: "ab" })).toEqual({
      context: [7],
      continuation: [6],
    });
    expect(await encodePair(tokenizer, { context: { text: " " }, continuation: "a" })).toEqual({
      context: [7],
      continuation: [2],
    });
    expect(await encodePair(merging(true), { context: { text: "" }, continuation: "ab" })).toEqual({
      context: [7],
      continuation: [6],
    });
    expect(await encodePair(merging(true), { context: { text: "a" }, continuation: " b" })).toEqual({
      context: [7, 0],
      continuation: [3],
    });
    const none = { ...tokenizer, stopIds: [] };
    await expect(encodePair(none, { context: { text: "" }, continuation: "a" })).rejects.toThrow(
      /neither a special token/,
    );
  });

  it.each([[[7]], [[8]], [[8, 7]]])(
    "leaves out the ids %j that the tokenizer appends to each text",
    async (ending) => {
      for (const beginsText of [false, true]) {
        const [plain, appending] = [merging(beginsText), { ...merging(beginsText, ending), stopIds: [7] }];
        for (const [context, continuation] of [
          ["a", " b"],
          ["a: ", "b"],
          ["b<s>", "a"],
          ["ba", "bb"],
        ] as const) {
          const request = { context: { text: context }, continuation };
          expect(await encodePair(appending, request)).toEqual(await encodePair(plain, request));
        }
      }
      // The text's place is unknown: all ids stay.
      const unlike = {
        ...merging(false, ending),
        encode: (_: string, { specialTokens = true } = {}) => [specialTokens ? 1 : 2],
      };
      expect((await encodePrompts(bulkTokenizer(unlike), ["a"]))[0]).toEqual([1]);
    },
  );

  it("adds no special tokens after ids or a chat", async () => {
    expect(await encodePair(merging(true), { context: { ids: [4, 4] }, continuation: "a" })).toEqual({
      context: [4, 4],
      continuation: [0],
    });
    const chat = fakeTokenizer({ beginOfText: true });
    const context = { messages: [{ role: "user", content: "A" }] };
    // <|user|>=259 A=65 <|end|>=257 <|assistant|>=260, then "B"=66.
    expect(await encodePair(chat, { context, continuation: "B" })).toEqual({
      context: [259, 65, 257, 260],
      continuation: [66],
    });
  });

  it("keeps a continuation of ids unchanged", async () => {
    // "ab" would be the one token 6.
    expect(await encodePair(tokenizer, { context: { text: "b" }, continuation: { ids: [0, 1] } })).toEqual({
      context: [1],
      continuation: [0, 1],
    });
    expect(await encodePair(tokenizer, { context: { ids: [] }, continuation: { ids: [3] } })).toEqual({
      context: [7],
      continuation: [3],
    });
    const ids = Array.from({ length: 13 }, () => 0);
    await expect(
      encodePair(tokenizer, { context: { text: "b" }, continuation: { ids: [] } }),
    ).rejects.toThrow("the continuation [], which adds no token");
    expect(quoteContinuation({ continuation: { ids } })).toBe("[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, …]");
  });

  it("encodes a chat's continuation alone when the boundary would merge", async () => {
    const chat = { ...tokenizer, render: () => ({ text: "ba", ids: [1, 0], assistantMask: null }) };
    expect(await encodePair(chat, { context: { messages: [] }, continuation: "b" })).toEqual({
      context: [1, 0],
      continuation: [1],
    });
  });
});

it("gives an empty prompt the prefix token", async () => {
  expect(await encodePrompt(fakeTokenizer(), { text: "" })).toEqual([257]);
  expect(await encodePrompt(fakeTokenizer(), { text: "A" })).toEqual([65]);
});
