import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AnyEvaluation } from "@periodic-eval/contracts";
import { measure } from "../../session/window/measure.ts";
import { evaluationConformance, fakeModel, type FakeModel } from "@periodic-eval/testing";
import { capabilityEvaluation } from "../capability/evaluation.ts";
import { leakageEvaluation } from "../leakage/evaluation.ts";
import { marginEvaluation } from "../margin/evaluation.ts";
import { PeriodicKLCallback } from "../../config/callbacks.ts";
import { divergence, klEvaluation } from "./evaluation.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
let questions: string;
let probes: string;
beforeAll(async () => {
  questions = join(folder, "questions.jsonl");
  const record = (question: string) =>
    JSON.stringify({ question, choice_labels: ["A", "B"], choices: ["x", "y"], correct_answer: "A" });
  probes = join(folder, "probes.json");
  await writeFile(probes, JSON.stringify({ good: { affirm: ["yes", "aye"], negate: ["no"] } }));
  await writeFile(questions, ["One?", "Two?", "Three?"].map(record).join("\n"));
});

const tuned = () => fakeModel({ weights: () => "tuned", base: fakeModel() });

describe.each(["letters", "cloze", "leakage", "margin"] as const)("conformance, of %s", (name) => {
  const make = () => ({
    evaluation: klEvaluation({
      of:
        name === "leakage"
          ? leakageEvaluation({ questions: ["Who?"] })
          : name === "margin"
            ? marginEvaluation({ probes })
            : capabilityEvaluation({ questions, method: name }),
    }),
    model: tuned(),
  });
  for (const check of evaluationConformance(make)) it(check.name, check.run);
});

describe("divergence", () => {
  const logs = (...shares: number[]) => shares.map(Math.log);

  it("is Σ p log(p/q)", () => {
    // ½·log(½ / ¼) + ½·log(½ / ¾) = ½·log(4/3); the other way ¼·log(½) + ¾·log(3/2).
    expect(divergence("x", logs(0.5, 0.5), logs(0.25, 0.75))).toBeCloseTo(0.5 * Math.log(4 / 3), 15);
    expect(divergence("x", logs(0.25, 0.75), logs(0.5, 0.5))).toBeCloseTo(
      0.25 * Math.log(0.5) + 0.75 * Math.log(1.5),
      15,
    );
  });

  it("is 0 for equal distributions, never negative, and ignores tokens that p excludes", () => {
    expect(divergence("x", logs(0.3, 0.7), logs(0.3, 0.7))).toBe(0);
    expect(divergence("x", [-1e-9], [0])).toBe(0);
    expect(divergence("x", logs(1, 0), logs(0.5, 0.5))).toBeCloseTo(Math.log(2), 15);
  });

  it("throws when q excludes a token that p allows", () => {
    expect(() => divergence("x", logs(0.5, 0.5), logs(1, 0))).toThrow(/item x: got a divergence of Infinity/);
    expect(() => divergence("x", [Number.NaN], [0])).toThrow(/NaN/);
  });
});

describe("klEvaluation against the base", () => {
  it("compares model and base over the whole vocabulary at the evaluation's prompts", async () => {
    const seen: string[] = [];
    // Two tokens share the mass: (¾, ¼) against (½, ½).
    const of = (share: number, name: string): FakeModel =>
      fakeModel({
        ...(name === "model" && { base: of(0.5, "base") }),
        nextToken(prompt, candidate) {
          if (candidate === "a") seen.push(`${name} ${prompt}`);
          return candidate === "a" ? Math.log(share) : candidate === "b" ? Math.log(1 - share) : -Infinity;
        },
      });
    const capability = capabilityEvaluation({ questions, method: "cloze" });
    const { snapshot, rows } = await measure(klEvaluation({ of: capability }), of(0.75, "model"));
    expect(rows).toHaveLength(3);
    expect(snapshot.metrics["kl_to_base"]!.value).toBeCloseTo(
      0.75 * Math.log(1.5) + 0.25 * Math.log(0.5),
      12,
    );
    expect(snapshot.metrics["kl_from_base"]!.value).toBeCloseTo(0.5 * Math.log(4 / 3), 12);
    expect(snapshot.primary_metric).toBe("kl_to_base");
    expect([...seen].sort()).toEqual(
      ["base", "model"].flatMap((name) =>
        ["One?", "Three?", "Two?"].map((q) => `${name} Question: ${q}\nAnswer:`),
      ),
    );
    expect(snapshot).toMatchObject({ of: "capability", num_prompts: 3, truncated: 0 });
    expect(snapshot.provenance.evaluation).toMatchObject({
      of: "capability",
      of_version: "cloze-1",
      of_provenance: { method: "cloze", file_questions: 3 },
      subsample: { n: null, of: { n: 200, seed: 42 } },
      example_prompt: expect.stringMatching(/^Question: .*\nAnswer:$/),
    });
  });

  it("is 0 when the adapter changes nothing, and positive when it does", async () => {
    const evaluation = klEvaluation({ of: capabilityEvaluation({ questions }) });
    const same = await measure(evaluation, fakeModel({ base: fakeModel() }));
    expect(same.snapshot.metrics["kl_to_base"]!.value).toBe(0);
    const changed = await measure(evaluation, tuned());
    expect(changed.snapshot.metrics["kl_to_base"]!.value).toBeGreaterThan(0.1);
  });

  it("uses the first `limit` prompts only", async () => {
    const of = capabilityEvaluation({ questions });
    const [all, two] = [
      await klEvaluation({ of }).items(tuned()),
      await klEvaluation({ of, limit: 2 }).items(tuned()),
    ];
    expect(two).toEqual(all.slice(0, 2));
    expect(all).toHaveLength(3);
  });

  it("reads each statement of margin to its end, in the tokens in which it is scored", async () => {
    const before = { messages: [{ role: "user", content: "Say on." }] };
    for (const of of [marginEvaluation({ probes }), marginEvaluation({ probes, before })]) {
      const scored: string[] = [];
      const read: string[] = [];
      const model = fakeModel({
        logLikelihood(context, continuation) {
          // The probe's sequences are random bytes.
          if (!/[^ -~]/.test(continuation)) scored.push(context + continuation);
          return -1;
        },
      });
      await measure(of, model);
      await measure(
        klEvaluation({ of }),
        fakeModel({ base: fakeModel(), nextToken: (prompt) => (read.push(prompt), -1) }),
      );
      // A statement without a context follows the prefix token, which here is the end-of-text token.
      const said = read.map((text) => text.replace(/^<\|end\|>/, ""));
      expect(new Set(said)).toEqual(new Set(scored));
      expect(new Set(scored).size).toBe(3);
    }
    const { tokenizer: _, ...mute } = tuned();
    const of = marginEvaluation({ probes });
    expect(() => of.prompts!(mute as never, [{ text: "yes" }] as never)).toThrow("which has no tokenizer");
  });

  it("rejects a model without a base before step 1, and says what to do", async () => {
    const evaluation = klEvaluation({ of: capabilityEvaluation({ questions }) });
    await expect(evaluation.items(fakeModel())).rejects.toThrow(
      /which has no base, .*Train an adapter \(LoRA\)/,
    );
    const { nextToken: _, ...base } = fakeModel();
    await expect(evaluation.items(fakeModel({ base }))).rejects.toThrow(/no base with the ability nextToken/);
  });

  it.each([
    [
      () => klEvaluation({ of: { ...marginEvaluation({ probes: "x" }), prompts: undefined } as never }),
      'the evaluation "margin", which has no `prompts`',
    ],
    [() => klEvaluation({} as never), "an evaluation with `prompts`"],
    [() => klEvaluation({ of: leakageEvaluation(), limit: 0 }), "klEvaluation options.limit: got 0"],
    [() => klEvaluation({ of: leakageEvaluation(), limt: 1 } as never), 'Did you mean "limit"?'],
    [() => new PeriodicKLCallback({}), "an evaluation with `prompts`"],
    [() => new PeriodicKLCallback({ off: 1 } as never), 'Did you mean "of"?'],
  ])("rejects wrong options: case %#", (make, message) => {
    expect(make).toThrow(message);
  });
});

it("gives PeriodicKLCallback the id of its evaluation, so that several can run side by side", () => {
  const callback = new PeriodicKLCallback({ of: leakageEvaluation() as AnyEvaluation, atEnd: false });
  expect([callback.id, callback.asks[0]!.name]).toEqual(["kl_leakage", "kl_to_base"]);
  expect(callback.triggers).toEqual([{ at: "start" }, { every: 20, unit: "percent" }]);
});
