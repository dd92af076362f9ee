import { spell, tokenByteRanges } from "@periodic-eval/tokenizers";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { tokenizerFixtures } from "../testing/fixtures.test-data.ts";
import { openCodec } from "./load-tokenizer.ts";
import { readTokenizerFiles } from "./files.ts";

if (tokenizerFixtures.length === 0) reportMissing("a tokenizer folder with expected.json");

describe.each(tokenizerFixtures)("token ranges of $name", ({ folder }) => {
  it("follow one another and cover the text", async () => {
    const codec = openCodec(await readTokenizerFiles(folder), "transformers");
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.oneof(
            { weight: 9, arbitrary: fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }) },
            fc.constantFrom("▁", " "),
          ),
          minLength: 1,
        }),
        (text) => {
          const ids = codec.encode(text, false);
          const spelled = spell(codec, text);
          const ranges = tokenByteRanges(codec, spelled, ids)!;
          expect(ranges).toHaveLength(ids.length);
          let at = 0;
          for (const [start, end] of ranges) {
            expect(start).toBe(at);
            at = end;
          }
          expect(at).toBe(Buffer.byteLength(spelled.text));
          expect(spelled.positionOf(text.length)).toBe(spelled.text.length);
        },
      ),
    );
  });

  it("are null when ids and text disagree", async () => {
    const codec = openCodec(await readTokenizerFiles(folder), "transformers");
    expect(tokenByteRanges(codec, spell(codec, "Hello"), codec.encode("Hullo", false))).toBeNull();
  });
});
