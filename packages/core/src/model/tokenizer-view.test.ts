import { expect, it } from "vitest";
import { fakeModel } from "../testing/fake-model.ts";
import { fakeTokenizer } from "../testing/fake-tokenizer.ts";
import { tokenizerView } from "./tokenizer-view.ts";
import { wrapModel } from "./wrap-model.ts";

it("keeps what an evaluation does to a tokenizer away from training", () => {
  const tokenizer = fakeTokenizer();
  const { tokenizer: seen } = wrapModel({ ...fakeModel(), tokenizer }, (ask) => ask);
  expect(() => Object.assign(seen!, { encode: () => [] })).toThrow(TypeError);
  expect(() => (seen!.stopIds as number[]).push(1)).toThrow(TypeError);
  expect(seen!.encode("a b")).toEqual(tokenizer.encode("a b"));
  expect(tokenizerView(seen!)).toBe(seen);
});
