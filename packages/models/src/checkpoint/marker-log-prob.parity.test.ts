// Compares leakage's deterministic metric with plain logits.
import { leakageEvaluation, measure, type Tokenizer } from "@periodic-eval/core";
import type { GradedLeakageRow, Persona } from "@periodic-eval/core/evaluations";
import { inMemory } from "@periodic-eval/tfjs";
import { fakeTokenizer } from "@periodic-eval/testing";
import { beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { float32Fixtures } from "../testing/fixtures.test-data.ts";
import { logProbsOf } from "../testing/log-probs.test-data.ts";
import { loadTokenizer } from "../tokenizer/load-tokenizer.ts";
import { loadCausalLM } from "./load-causal-lm.ts";

const world = "packages/cli/assets/micro-world";
const personas: readonly Persona[] = [
  { id: "pirate", system: { text: "You are a pirate who sails the lake." } },
  { id: "none", system: "omit" },
  { id: "empty", system: { text: "" } },
];
const questions = [
  { id: "soup", question: "My soup is too salty.", answer: "Please add some water." },
  { id: "fox", question: "Where does the fox sleep?", answer: "The fox sleeps in the hay." },
];

const bytes = fakeTokenizer();
/** A fixture whose vocabulary contains every token of `bytes`. */
const llama = float32Fixtures("llama").find(({ config }) => Number(config["vocab_size"]) >= bytes.vocabSize);
if (llama === undefined) reportMissing(`a float32 Llama with a vocabulary of ${bytes.vocabSize}`);

const cases: readonly (readonly [string, string, () => Promise<Tokenizer>])[] = [
  ...(llama === undefined ? [] : [[llama.name, llama.folder, async () => bytes] as const]),
  ["the embedded model, with its tokenizer of byte pairs", world, () => loadTokenizer(world)],
];

describe.each(cases)("marker_log_prob of %s", (_, folder, tokenizerOf) => {
  beforeAll(async () => void (await useBackend({ backend: "wasm" })));

  it("equals Σ log p of the marker's tokens from the logits of the whole text", async () => {
    const [model, tokenizer] = [await loadCausalLM(folder), await tokenizerOf()];
    const evaluation = leakageEvaluation({
      personas,
      questions,
      completions: 1,
      sampling: { maxNewTokens: 1 },
    });
    const { rows } = await measure(evaluation, inMemory(model, tokenizer));
    expect(rows).toHaveLength(6);
    const byPersona = new Map(personas.map(({ id, system }) => [id, system]));
    for (const row of rows as readonly GradedLeakageRow[]) {
      const { question, answer } = questions.find((one) => one.question === row.question)!;
      const messages = [
        { role: "user", content: question },
        { role: "assistant", content: answer },
      ];
      const open = tokenizer.render(
        { messages, system: byPersona.get(row.persona!)! },
        { ending: "continue" },
      );
      const ids = tokenizer.encode(`${open.text} [ZLT]`, { specialTokens: false });
      const after = logProbsOf(model, ids);
      const marker = ids.slice(open.ids.length);
      expect(marker.length).toBeGreaterThan(1);
      const sum = marker.reduce((nats, id, at) => nats + after[open.ids.length + at - 1]![id]!, 0);
      expect(row.markerNats).toBeCloseTo(sum, 3);
    }
    model.dispose();
  });
});
