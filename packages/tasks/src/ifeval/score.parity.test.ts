import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readDocument } from "./ifeval-document.ts";
import { instructionKinds } from "./instructions.ts";
import { scoreResponse } from "./score.ts";

interface Golden {
  readonly instruction_id_list: readonly string[];
  readonly kwargs: readonly unknown[];
  readonly response: string;
  readonly strict: readonly boolean[];
  readonly loose: readonly boolean[];
}

/** Written by benchmarks/peers/ifeval_reference.py: lm-evaluation-harness 0.4.13, nltk 3.10.4, langdetect 1.0.9 with seed 0. */
const goldens = readFileSync(new URL("goldens/responses.jsonl", import.meta.url), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Golden);

/**
 * Known differences, with the line of each response. Line 263 mixes English and Swahili: langdetect names one of them by
 * chance, and the odds change without its profiles ca and cy (benchmarks/results/ifeval.md).
 */
const knownToDiffer: Readonly<Record<string, readonly object[]>> = {
  "language:response_language": [
    { line: 263, ours: { strict: [true], loose: [true] }, theirs: { strict: [false], loose: [true] } },
  ],
};

describe("IFEval's instructions against lm-evaluation-harness, over 1,305 responses", () => {
  it("covers all 1,305 responses", () => {
    expect(goldens.length).toBe(1305);
  });

  it.each(Object.keys(instructionKinds))("scores %s alike, strictly and loosely", (id) => {
    const own = goldens
      .map((golden, at) => ({ ...golden, line: at + 1 }))
      .filter(({ instruction_id_list: ids }) => ids[0] === id);
    expect(own.length).toBeGreaterThanOrEqual(20);
    for (const outcomes of [own.map(({ strict }) => strict[0]), own.map(({ loose }) => loose[0])]) {
      expect(new Set(outcomes)).toEqual(new Set([true, false]));
    }
    const scored = own.map(({ line, strict, loose, ...golden }) => {
      const document = readDocument({ key: line, prompt: "-", ...golden }, `goldens:${line}`);
      return { line, ours: scoreResponse(document, golden.response), theirs: { strict, loose } };
    });
    const differing = scored.filter(({ ours, theirs }) => JSON.stringify(ours) !== JSON.stringify(theirs));
    expect(differing).toEqual(knownToDiffer[id] ?? []);
  });
});
