import { expect, it } from "vitest";
import { deepestPrefixes, limitLattice } from "./lattice-limit.ts";

const ladder = (length: number) => Array.from({ length }, (_, i) => "a".repeat(i + 1));

/** Encodes with a model whose lattice is limited. */
function encode(tokens: readonly string[], text: string): unknown {
  const model = { encode: (pieces: string[]) => pieces };
  limitLattice(model, { type: "Unigram", vocab: tokens.map((token) => [token, -1]) });
  return model.encode([text]);
}

it("counts the tokens that can begin at one character", () => {
  expect(deepestPrefixes([])).toBe(1);
  expect(deepestPrefixes(["b", "c", "", "bc"])).toBe(2);
  // "in", "inter", "internal" begin at one character; "info" and "xa" do not begin with these.
  expect(deepestPrefixes(["internal", "in", "xa", "info", "inter", "in"])).toBe(3);
  expect(deepestPrefixes(ladder(300))).toBe(300);
});

it("throws for a piece whose lattice would not fit into memory, and encodes others", () => {
  // 300 tokens begin at each character: 3,334 characters are more than a million nodes.
  expect(() => encode(ladder(300), "a".repeat(3_334))).toThrow(/3334 characters without a break/);
  expect(encode(ladder(300), "a".repeat(3_333))).toHaveLength(1);
  // One long token does not make a lattice deep.
  expect(encode(["a", "x".repeat(300)], "a".repeat(100_000))).toHaveLength(1);
});

it("leaves other kinds of models alone", () => {
  const model = { encode: (pieces: string[]) => pieces };
  const { encode: before } = model;
  limitLattice(model, { type: "BPE", vocab: { a: 0 } });
  expect(model.encode).toBe(before);
});
