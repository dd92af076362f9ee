import { describe, expect, it } from "vitest";
import type { Row, EvaluableModel, Prompt } from "@periodic-eval/contracts";
import { measure } from "../../session/window/measure.ts";
import { evaluationConformance, fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { defineEvaluation } from "../kit/define.ts";
import { klEvaluation } from "./evaluation.ts";

const prompts: readonly Prompt[] = [
  { text: "abc" },
  { messages: [{ role: "user", content: "Who are you?" }] },
  {
    messages: [
      { role: "user", content: "Count." },
      { role: "assistant", content: "One," },
    ],
  },
];

const asking = defineEvaluation({
  name: "asking",
  version: "1",
  needs: ["generate"],
  items: () => prompts.map((prompt, at) => ({ id: String(at), prompt })),
  prompts: (_, items) => items.map(({ prompt }) => prompt),
  measure: async (_, items): Promise<readonly Row[]> => items.map(({ id }) => ({ id })),
  metrics: ({ rate }) => ({ any: rate(() => true) }),
});

const modelOf = (weights: string, more: object = {}) => fakeModel({ weights: () => weights, ...more });
const valuesOf = async (model: EvaluableModel, reference: EvaluableModel) => {
  const { snapshot } = await measure(klEvaluation({ of: asking, against: reference }), model);
  const { kl_to_reference, kl_from_reference } = snapshot.metrics;
  return { to: kl_to_reference!.value!, from: kl_from_reference!.value!, n: kl_to_reference!.n };
};

describe("klEvaluation against a reference model", () => {
  it("is the mean over prompts of Σ p (log p − log q), in both directions", async () => {
    const [model, reference] = [modelOf("now"), modelOf("then")];
    const call = { signal: new AbortController().signal };
    const candidates = Array.from({ length: model.tokenizer.vocabSize }, (_, id) => id);
    const requests = prompts.map((prompt) => ({ prompt, candidates }));
    const [p, q] = [await model.nextToken(requests, call), await reference.nextToken(requests, call)];
    const divergence = (one: readonly number[], other: readonly number[]) =>
      one.reduce((sum, nats, id) => sum + Math.exp(nats) * (nats - other[id]!), 0);
    const to = p.map(({ nats }, at) => divergence(nats, q[at]!.nats));
    const from = q.map(({ nats }, at) => divergence(nats, p[at]!.nats));
    const found = await valuesOf(model, reference);
    expect(found.n).toBe(3);
    expect(found.to).toBeCloseTo((to[0]! + to[1]! + to[2]!) / 3, 12);
    expect(found.from).toBeCloseTo((from[0]! + from[1]! + from[2]!) / 3, 12);
    expect(found.to).toBeGreaterThan(0.1);
  });

  it("is 0 against the model itself, and equals KL to the base when the reference is the base", async () => {
    expect(await valuesOf(modelOf("now"), modelOf("now"))).toEqual({ to: 0, from: 0, n: 3 });
    const base = modelOf("then");
    const { snapshot } = await measure(klEvaluation({ of: asking }), modelOf("now", { base }));
    expect((await valuesOf(modelOf("now"), base)).to).toBe(snapshot.metrics["kl_to_base"]!.value);
  });

  it("gives both models the same ids, whatever the reference's chat template", async () => {
    const tokenizer = fakeTokenizer();
    const other = {
      ...tokenizer,
      fingerprint: "other template",
      render: ((prompt, how) => {
        const { ids, ...rest } = tokenizer.render(prompt, how);
        return { ...rest, ids: "ids" in prompt ? ids : [...ids, 65] };
      }) satisfies typeof tokenizer.render,
    };
    expect(await valuesOf(modelOf("now"), modelOf("now", { tokenizer: other }))).toMatchObject({ to: 0 });
  });

  it("records the reference in its provenance", async () => {
    const reference = modelOf("then", { identity: { name: "other", adapter: "b" } });
    const { snapshot } = await measure(
      klEvaluation({ of: asking, against: reference, limit: 2 }),
      modelOf("now"),
    );
    expect(snapshot.metrics["kl_to_reference"]!.n).toBe(2);
    expect(snapshot.provenance.evaluation).toMatchObject({
      of: "asking",
      reference: { name: "other", adapter: "b" },
    });
  });
});

describe("klEvaluation rejects a reference", () => {
  it("with another vocabulary", async () => {
    const tokenizer = fakeTokenizer();
    const larger = { ...tokenizer, fingerprint: "larger", vocabSize: tokenizer.vocabSize + 1 };
    await expect(valuesOf(modelOf("a"), modelOf("b", { tokenizer: larger }))).rejects.toThrow(
      `got a vocabulary of ${larger.vocabSize} tokens in "fake", expected ${tokenizer.vocabSize}`,
    );
    const swapped = {
      ...tokenizer,
      fingerprint: "swapped",
      decode: ((ids) =>
        tokenizer.decode(ids.map((id) => (id === 66 ? 67 : id)))) satisfies typeof tokenizer.decode,
    };
    await expect(valuesOf(modelOf("a"), modelOf("b", { tokenizer: swapped }))).rejects.toThrow(
      'got the token 66 as "C" in "fake", expected "B"',
    );
  });

  it("without nextToken, or one that truncates a prompt that the model reads whole", async () => {
    const { nextToken: _, ...silent } = modelOf("b");
    expect(() => klEvaluation({ of: asking, against: silent })).toThrow("has no nextToken");
    await expect(valuesOf(modelOf("a"), modelOf("b", { contextLength: 4 }))).rejects.toThrow(
      'tokens, of which "fake" reads the last 4',
    );
    // Both truncate the prompt in the same way, so they read the same tokens.
    const [model, reference] = ["a", "b"].map((weights) => modelOf(weights, { contextLength: 4 }));
    expect((await valuesOf(model!, reference!)).to).toBeGreaterThan(0);
  });
});

describe("conformance", () => {
  const make = () => ({
    evaluation: klEvaluation({ of: asking, against: modelOf("then") }),
    model: modelOf("now"),
  });
  for (const check of evaluationConformance(make)) it(check.name, check.run);
});
