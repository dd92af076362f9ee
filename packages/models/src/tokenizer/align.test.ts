import { existsSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fixtures } from "../testing/fixtures.ts";
import { tokenByteRanges } from "./align.ts";
import { openCodec } from "./codec.ts";
import { readTokenizerFiles } from "./files.ts";

const names = ["tok-generation-tag", "tok-llama3", "tok-llama2-inst", "tok-metaspace-first-zephyr"];

describe.skipIf(!existsSync(fixtures))(`token ranges (${fixtures})`, () => {
  it.each(names)("follow one another and cover the text for %s", async (name) => {
    const codec = await openCodec(await readTokenizerFiles(`${fixtures}/${name}`), "transformers");
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1 }), (text) => {
        const ids = codec.encode(text, false);
        const ranges = tokenByteRanges(codec, text, ids);
        if (ranges === null) return; // The text contains U+2581, which a Metaspace pipeline spells like a space.
        expect(ranges).toHaveLength(ids.length);
        let at = 0;
        for (const [start, end] of ranges) {
          expect(start).toBe(at);
          at = end;
        }
        expect(at).toBe(Buffer.byteLength(text));
      }),
    );
  });

  it("are null if ids and text disagree", async () => {
    const codec = await openCodec(await readTokenizerFiles(`${fixtures}/tok-llama3`), "transformers");
    expect(tokenByteRanges(codec, "Hello", codec.encode("Hullo", false))).toBeNull();
  });
});
