import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PeriodicEvalError, type Message } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import { reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { smollm2, tokenizerFixtures } from "../testing/fixtures.test-data.ts";
import { loadTokenizer } from "./load-tokenizer.ts";

interface Encoded {
  readonly ids: number[];
  readonly ids_no_special: number[];
  readonly decoded: string;
  readonly decoded_skip_special: string;
}
interface Rendered {
  readonly rendered: string;
  readonly ids: number[];
  readonly tokenizer_json_ids?: number[];
}
interface Expected {
  readonly vocab_size: number;
  readonly strings: (Encoded & { text: string; tokenizer_json?: Encoded })[];
  readonly chats: {
    messages: Message[];
    plain: Rendered;
    generation_prompt: Rendered;
    continue_final_message?: Rendered;
    assistant_masks?: number[];
  }[];
  readonly template_errors?: { messages: Message[]; error: string }[];
}

// Goldens: transformers 5.23.0 with tokenizers 0.23.3, see ../shared/fixtures/README.md.
const endings = {
  plain: "complete",
  generation_prompt: "generation",
  continue_final_message: "continue",
} as const;

if (tokenizerFixtures.length === 0) reportMissing("a tokenizer folder with expected.json");

describe.each(tokenizerFixtures)("$name", ({ folder }) => {
  const expected = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8")) as Expected;
  const isTwofold = expected.strings.some((string) => string.tokenizer_json !== undefined);
  const pipelines = isTwofold ? (["transformers", "tokenizer_json"] as const) : (["transformers"] as const);

  describe.each(pipelines)("pipeline %s", (pipeline) => {
    const opened = loadTokenizer(folder, { pipeline });

    it("has the reference's vocabulary size", async () =>
      expect((await opened).vocabSize).toBe(expected.vocab_size));

    it.each(expected.strings.map((string) => [JSON.stringify(string.text), string] as const))(
      "encodes and decodes %s",
      async (_, string) => {
        const tokenizer = await opened;
        const golden = pipeline === "tokenizer_json" ? (string.tokenizer_json ?? string) : string;
        expect(tokenizer.encode(string.text)).toEqual(golden.ids);
        expect(tokenizer.encode(string.text, { specialTokens: false })).toEqual(golden.ids_no_special);
        expect(tokenizer.decode(golden.ids)).toBe(golden.decoded);
        expect(tokenizer.decode(golden.ids, { specialTokens: false })).toBe(golden.decoded_skip_special);
      },
    );

    describe.each(expected.chats.map((chat, i) => [i, chat] as const))("chat %i", (_, chat) => {
      for (const [key, ending] of Object.entries(endings) as [
        keyof typeof endings,
        (typeof endings)[keyof typeof endings],
      ][]) {
        const golden = chat[key];
        if (golden === undefined) continue;
        it(`renders with the ending ${ending}`, async () => {
          const rendered = (await opened).render({ messages: chat.messages }, { ending });
          expect(rendered.text).toBe(golden.rendered);
          expect(rendered.ids).toEqual(
            pipeline === "tokenizer_json" ? (golden.tokenizer_json_ids ?? golden.ids) : golden.ids,
          );
          expect(rendered.assistantMask?.length).toBe(rendered.ids.length);
        });
      }
      const masks = chat.assistant_masks;
      if (masks === undefined) return;
      it("marks the assistant's tokens", async () => {
        const { assistantMask } = (await opened).render({ messages: chat.messages }, { ending: "complete" });
        expect(assistantMask?.map(Number)).toEqual(masks);
      });
    });

    for (const [i, { messages, error }] of (expected.template_errors ?? []).entries()) {
      it(`throws the template's error ${i}`, async () => {
        const tokenizer = await opened;
        let thrown: unknown;
        try {
          tokenizer.render({ messages }, { ending: "complete" });
        } catch (caught) {
          thrown = caught;
        }
        expect(PeriodicEvalError.is(thrown, "model")).toBe(true);
        expect((thrown as PeriodicEvalError).cause).toMatchObject({ message: error });
      });
    }
  });
});

// Goldens: ../shared/fixtures/smollm2, made with transformers from the same files.
it.skipIf(!existsSync(smollm2))(`encodes like SmolLM2's tokenizer (${smollm2})`, async () => {
  const tokenizer = await loadTokenizer(smollm2);
  const { text, ids } = tokenizer.render({ messages: [{ role: "user", content: "Hi" }] });
  expect(text).toBe(
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
  );
  expect(tokenizer.decode(ids)).toBe(text);
  expect(tokenizer.stopIds).toEqual([2]);
});

let opened: ReturnType<typeof loadTokenizer> | undefined;
// Goldens: tokenizers 0.23.3 on SmolLM2's tokenizer.json.
it.skipIf(!existsSync(smollm2)).each([
  [" ²", [216, 19133]],
  [" ٣٤", [216, 164, 113, 164, 114]],
  ["x² + y³", [104, 19133, 1232, 329, 39050]],
  [" ½", [216, 16738]],
  [" Ⅷ", [216, 173, 223, 117]],
  [" १२३", [216, 9310, 117, 9310, 118, 9310, 119]],
  [" 𝟙𝟚", [216, 23159, 249, 243, 23159, 249, 244]],
  ["①②", [173, 235, 250, 173, 235, 111]],
  [" 12 34", [216, 33, 34, 216, 35, 36]],
  // A numeral by meaning, but a letter in Unicode.
  [" 一二", [216, 22924, 16736, 230]],
  ["B.  4", [50, 30, 256, 36]],
])(`encodes the numerals in %j as SmolLM2's tokenizer`, async (text, ids) => {
  const tokenizer = await (opened ??= loadTokenizer(smollm2, { pipeline: "tokenizer_json" }));
  expect(tokenizer.encode(text)).toEqual(ids);
  expect(tokenizer.decode(ids)).toBe(text);
});

// Goldens: transformers 5.24, which opens SmolLM2 as GPT2Tokenizer and so drops the file's Digits.
it.skipIf(!existsSync(smollm2)).each([
  ["B.  4", [50, 30, 216, 216, 36]],
  [" ²", [3351, 127]],
])(`encodes %j as transformers does for SmolLM2`, async (text, ids) => {
  expect((await loadTokenizer(smollm2)).encode(text)).toEqual(ids);
});
