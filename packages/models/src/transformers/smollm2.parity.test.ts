// Compares an ONNX export of a real instruct model with transformers for Python, in @huggingface/transformers.
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { findFixtures, reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { smollm2 } from "../testing/fixtures.test-data.ts";
import { exported, hasTransformers, needsTransformers } from "../testing/onnx.test-data.ts";
import { openTransformers } from "./open-transformers.ts";

const isAvailable = existsSync(smollm2) && hasTransformers;
const needs = `needs ${smollm2} and ${needsTransformers.slice("needs ".length)}`;
const files = findFixtures(/^smollm2[^/]*\/logits[^/]*\.json$/);

interface Scored {
  readonly text: string;
  readonly token_ids: readonly number[];
  readonly token_logprobs: readonly number[];
}

describe.skipIf(!isAvailable)(`SmolLM2-135M-Instruct in ONNX (${needs})`, () => {
  if (files.length === 0) reportMissing("smollm2*/logits*.json");

  it.each(files)("equals transformers in log-probabilities (%s)", async (file) => {
    const { model, dispose } = await openTransformers(await exported(smollm2));
    const signal = new AbortController().signal;
    for (const { text, token_ids: ids, token_logprobs } of JSON.parse(
      readFileSync(file, "utf8"),
    ) as Scored[]) {
      expect(model.tokenizer.encode(text, { specialTokens: false })).toEqual(ids);
      const request = { context: { ids: ids.slice(0, 1) }, continuation: { ids: ids.slice(1) } };
      const [scored] = await model.logLikelihoods([request], { signal });
      scored!.tokenNats.forEach((nats, at) =>
        expect(Math.abs(nats - token_logprobs[at]!)).toBeLessThan(1e-3),
      );
    }
    await dispose();
  });
});
