import { measure, ruleGrader, type Grader } from "@periodic-eval/core";
import { evaluationConformance, fakeModel } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import { complianceEvaluation } from "./compliance.ts";

const preference = {
  name: "polite",
  train_prompts: ["seen 1", "seen 2"],
  probe_prompts: ["new 1", "new 2", "new 3"],
};
const polite = ruleGrader({
  name: "polite",
  rule: (_, answer) => ({ reward: answer.includes("please") ? 1 : 0 }),
});

const run = async (reply: (prompt: string) => string, grader: Grader = polite) =>
  measure(complianceEvaluation({ preference, grader, samples: 2 }), fakeModel({ reply }));

describe("complianceEvaluation", () => {
  for (const check of evaluationConformance(() => ({
    evaluation: complianceEvaluation({ preference, grader: polite, sampling: { maxNewTokens: 8 } }),
    model: fakeModel(),
  })))
    it(check.name, check.run);

  it("averages training prompts and held-out prompts separately", async () => {
    const { snapshot, rows } = await run((prompt) => (/seen|new 1/.test(prompt) ? "yes please" : "no"));
    expect(snapshot.metrics["compliance"]).toMatchObject({ value: expect.closeTo(1 / 3, 12), n: 6 });
    expect(snapshot.metrics["seen_compliance"]).toMatchObject({ value: 1, n: 4 });
    expect(rows).toHaveLength(10);
  });

  it("grades the text after the thinking, and counts an answer whose thinking does not end as ungraded", async () => {
    const { snapshot } = await run((prompt) =>
      /new 1/.test(prompt) ? "<think>please" : "<think>please</think>no",
    );
    expect(snapshot.metrics["compliance"]).toMatchObject({ value: 0, n: 4 });
    expect(snapshot["ungraded"]).toBe(2);
  });

  it("returns null if the verifier throws", async () => {
    const grader = ruleGrader({
      name: "broken",
      rule: () => {
        throw new Error("out of order");
      },
    });
    const { snapshot, rows } = await run(() => "yes", grader);
    expect(snapshot.metrics["compliance"]).toMatchObject({ value: null, n: 0 });
    expect(rows[0]).toMatchObject({ reward: null, raw: "out of order" });
  });

  it("rejects wrong options", () => {
    expect(() => complianceEvaluation({ preference, grader: polite, samples: 0 })).toThrow(
      "compliance options.samples",
    );
    expect(() => complianceEvaluation({ preference, grader: polite, sample: 1 } as never)).toThrow(
      '"samples"',
    );
  });
});
