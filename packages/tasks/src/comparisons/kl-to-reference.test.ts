import {
  defineEvaluation,
  klToBase,
  measure,
  type EvaluableModel,
  type Prompt,
  type Row,
} from "@periodic-eval/core";
import { evaluationConformance, fakeModel, fakeTokenizer } from "@periodic-eval/core/testing";
import { describe, expect, it } from "vitest";
import { klToReference } from "./kl-to-reference.ts";

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
  const { snapshot } = await measure(klToReference({ of: asking, reference }), model);
  const { kl_to_reference, kl_from_reference } = snapshot.metrics;
  return { to: kl_to_reference!.value!, from: kl_from_reference!.value!, n: kl_to_reference!.n };
};

describe("the divergence from a reference", () => {
  it("is Σ p (log p − log q) of the next token, the mean over prompts, both ways", async () => {
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

  it("is 0 from the model itself, and that from the base where the reference is the base", async () => {
    expect(await valuesOf(modelOf("now"), modelOf("now"))).toEqual({ to: 0, from: 0, n: 3 });
    const base = modelOf("then");
    const { snapshot } = await measure(klToBase({ of: asking }), modelOf("now", { base }));
    expect((await valuesOf(modelOf("now"), base)).to).toBe(snapshot.metrics["kl_to_base"]!.value);
  });

  it("is of the same ids under another chat template", async () => {
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

  it("tells what it is from", async () => {
    const reference = modelOf("then", { identity: { name: "other", adapter: "b" } });
    const { snapshot } = await measure(klToReference({ of: asking, reference, limit: 2 }), modelOf("now"));
    expect(snapshot.metrics["kl_to_reference"]!.n).toBe(2);
    expect(snapshot.provenance.evaluation).toMatchObject({
      of: "asking",
      reference: { name: "other", adapter: "b" },
    });
  });
});

describe("a reference is refused", () => {
  it("of another vocabulary", async () => {
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

  it("that tells no next tokens, or reads less of a prompt than the model", async () => {
    const { nextToken: _, ...silent } = modelOf("b");
    expect(() => klToReference({ of: asking, reference: silent })).toThrow("tells no next tokens");
    await expect(valuesOf(modelOf("a"), modelOf("b", { contextLength: 4 }))).rejects.toThrow(
      'tokens, of which "fake" reads the last 4',
    );
    // What both cut alike they read alike.
    const [model, reference] = ["a", "b"].map((weights) => modelOf(weights, { contextLength: 4 }));
    expect((await valuesOf(model!, reference!)).to).toBeGreaterThan(0);
  });
});

describe("conformance", () => {
  const make = () => ({
    evaluation: klToReference({ of: asking, reference: modelOf("then") }),
    model: modelOf("now"),
  });
  for (const check of evaluationConformance(make)) it(check.name, check.run);
});
