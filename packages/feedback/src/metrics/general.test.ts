import { measure } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import { codeOf, generalProbes, capabilityRatio, generalEvaluation } from "./general.ts";

const code =
  "function fibonacci(n) { let [a, b] = [0, 1]; for (; n > 0; n--) [a, b] = [b, a + b]; return a; }";
const run = async (answers: { code: string; fruits: string; hot: string; sea: string }) => {
  const reply = (prompt: string) =>
    /fibonacci/.test(prompt)
      ? answers.code
      : /fruits/.test(prompt)
        ? answers.fruits
        : /hot/.test(prompt)
          ? answers.hot
          : answers.sea;
  const { snapshot } = await measure(generalEvaluation(), fakeModel({ reply }));
  return {
    values: ["general", "coding", "instructions"].map((name) => snapshot.metrics[name]!.value),
    failures: snapshot["failures"] as Readonly<Record<string, string>>,
  };
};

describe("generalEvaluation", () => {
  it("scores 1 when every task is solved", async () => {
    const answers = {
      code: `Here:\n\`\`\`js\nexport ${code}\n\`\`\`\nDone.`,
      fruits: "- figs\n- plums\n- pears",
      hot: "COLD.",
      sea: "The sea is blue.",
    };
    expect(await run(answers)).toEqual({ values: [1, 1, 1], failures: {} });
  });

  it("weights the coding task and the mean of the instructions equally", async () => {
    // The code is right for two of the five calls; the answers follow one of the three instructions.
    const answers = {
      code: "const fibonacci = (n) => n",
      fruits: "- figs\n- plums",
      hot: "COLD",
      sea: "Blue is the sea.",
    };
    const { values, failures } = await run(answers);
    expect(values[1]).toBeCloseTo(2 / 5, 12);
    expect(values[2]).toBeCloseTo(1 / 3, 12);
    expect(values[0]).toBeCloseTo(0.5 * (2 / 5) + 0.5 * (1 / 3), 12);
    expect(failures).toMatchObject({
      fibonacci: "fibonacci(2) is 2, not 1",
      three_lines: "2 lines",
      last_word: 'the end "Blue is the sea."',
    });
  });

  it("checks the last word of an answer of 100,000 quotes in time proportional to its length", async () => {
    const { score } = generalProbes.find(({ id }) => id === "last_word")!;
    const answer = `The sea is blue${'"'.repeat(100_000)}`;
    const began = performance.now();
    expect([await score(`${answer}x`), await score(answer)]).toMatchObject([{ score: 0 }, { score: 1 }]);
    expect(performance.now() - began).toBeLessThan(5000);
  });

  it("scores 0 for code that tries to escape, does not end or returns objects", async () => {
    for (const bad of ["process.exit(1)", "for (;;);", "const fibonacci = () => ({ valueOf: () => 1 })"]) {
      const { values } = await run({ code: bad, fruits: "", hot: "cold", sea: "" });
      expect(values).toEqual([0, 0, 0]);
    }
  });
});

it("codeOf returns the last fenced block, even if it is not closed, or the whole answer if there is none", () => {
  expect(codeOf("a\n```\nb\n```\nc\n```js\nd\n```")).toBe("d\n");
  expect(codeOf("```js\nlet x = 1;")).toBe("let x = 1;");
  expect(codeOf("let x = 1;")).toBe("let x = 1;");
});

it("capabilityRatio returns null for a missing score or a baseline of 0", () => {
  expect(capabilityRatio(0.5, 0.25)).toBe(2);
  expect(capabilityRatio(0, 0.5)).toBe(0);
  expect(capabilityRatio(0.5, 0)).toBeNull();
  expect(capabilityRatio(null, 0.5)).toBeNull();
  expect(capabilityRatio(0.5, null)).toBeNull();
});
