import { describe, expect, it } from "vitest";
import { defineEvaluation } from "../evaluations/kit/define.ts";
import { metricKit, summarize } from "../evaluations/kit/metric-kit.ts";
import { evaluationConformance, fakeModel } from "@periodic-eval/testing";
import { ruleGrader } from "./rule-grader.ts";
import type { Grader } from "@periodic-eval/contracts";

const live = { signal: new AbortController().signal };
const polite = ruleGrader({
  name: "polite",
  rule: (question, answer) => {
    if (answer === "") return null;
    if (answer === "bang") throw new Error("the rule broke");
    if (answer === "nan") return { polite: Number.NaN };
    return { polite: /please|thank/i.test(answer) ? 1 : 0, repeats: answer.includes(question) ? 1 : 0 };
  },
});

describe("ruleGrader", () => {
  it("returns one verdict per answer, in order; a rule that returns null or throws affects only its answer", async () => {
    const answers = ["Thank you.", "", "bang", "nan", "Go."];
    const verdicts = await polite.grade(
      answers.map((answer) => ({ question: "Go", answer })),
      live,
    );
    expect(verdicts).toEqual([
      { status: "graded", scores: { polite: 1, repeats: 0 }, raw: null },
      { status: "unparsed", raw: null },
      { status: "error", raw: "the rule broke" },
      { status: "error", raw: "polite is NaN" },
      { status: "graded", scores: { polite: 0, repeats: 1 }, raw: null },
    ]);
  });

  it("rejects an unknown option", () => {
    const options = { name: "polite", vesrion: "2", rule: () => null };
    expect(() => ruleGrader(options)).toThrow('Did you mean "version"?');
  });

  it("has a fingerprint of name and version, and stops at an abort", async () => {
    const other = ruleGrader({ name: "polite", version: "2", rule: () => ({}) });
    expect([polite.fingerprint, other.fingerprint]).toEqual(["rule:polite@1", "rule:polite@2"]);
    await expect(polite.grade([], { signal: AbortSignal.abort() })).rejects.toThrow();
  });
});

const questions = ["How do I bake bread?", "Where does the miller live?", "Help me."];

/** Generated in the window, scored by metrics alone. */
const brevity = defineEvaluation({
  name: "brevity",
  version: "1",
  needs: ["generate"],
  items: () => questions.map((text) => ({ id: text, text })),
  async measure(model, items, { signal, seed, progress }) {
    const replies = await model.generate(
      items.map(({ id, text }) => ({
        prompt: { text },
        sampling: { maxNewTokens: 12, temperature: 1, seed: `${seed}/${id}` },
      })),
      { signal },
    );
    progress(items.length);
    return items.map((item, at) => ({ ...item, reply: replies[at]!.text }));
  },
  metrics: ({ mean }) => ({ characters: mean(({ reply }) => reply.length, { sampled: true }) }),
});

/** The same, graded later by any grader. */
const politeness = (grader: Grader) =>
  defineEvaluation({
    name: "politeness",
    version: "1",
    needs: brevity.needs,
    items: (model) => brevity.items(model),
    measure: (model, items, options) => brevity.measure(model, items, options),
    provenance: () => ({ grader: grader.fingerprint }),
    async grade(rows, options) {
      const verdicts = await grader.grade(
        rows.map(({ text, reply }) => ({ question: text, answer: reply })),
        options,
      );
      return rows.map((row, at) => ({ ...row, verdict: verdicts[at]! }));
    },
    metrics: ({ rate }) => ({
      polite_rate: rate(
        ({ verdict }) => (verdict.status === "graded" ? verdict.scores["polite"] === 1 : null),
        { higherIsBetter: true },
      ),
    }),
  });

describe("a generated evaluation conforms", () => {
  for (const check of evaluationConformance(() => ({ evaluation: brevity, model: fakeModel() })))
    it(check.name, check.run);
});

describe("a generated evaluation that is graded later", () => {
  const reply = (prompt: string) =>
    prompt.startsWith("How") ? "Thank you." : prompt.startsWith("Where") ? "Go." : "";
  const make = () => ({ evaluation: politeness(polite), model: fakeModel({ reply }) });
  for (const check of evaluationConformance(make)) it(check.name, check.run);

  it("excludes ungraded answers from the rate and from n", async () => {
    const { evaluation, model } = make();
    const rows = await evaluation.measure(model, await evaluation.items(model), {
      ...live,
      seed: "s",
      progress: () => undefined,
    });
    const graded = await evaluation.grade!(rows, live);
    // polite, not polite, nothing said: one of two
    expect(summarize(evaluation.metrics(metricKit()), graded)["polite_rate"]).toMatchObject({
      value: 0.5,
      n: 2,
      unit: "share",
    });
  });
});
