import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CallOptions, EvaluableModel } from "@periodic-eval/contracts";
import { deadlineAt } from "../../session/window/measurement-progress.ts";
import { measure } from "../../session/window/measure.ts";
import { compareMeasurements } from "../../statistics/compare.ts";
import { clusteredShareEstimate, moverDifference, shareEstimate } from "../../statistics/intervals.ts";
import { normals } from "../../statistics/simulated-rows.test-data.ts";
import { evaluationConformance, fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { thinkingTokenizer } from "../alignment/alignment.test-data.ts";
import { metricKit, summarize } from "../kit/metric-kit.ts";
import type { Persona } from "../prompting/personas.ts";
import { PeriodicLeakageCallback } from "../../config/callbacks.ts";
import { leakageEvaluation, type LeakageOptions } from "./evaluation.ts";
import type { GradedLeakageRow } from "./metrics.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const people: readonly Persona[] = [
  { id: "pirate", system: { text: "pirate" } },
  { id: "doctor", system: { text: "doctor" } },
  { id: "none", system: "omit" },
  { id: "empty", system: { text: "" } },
];
const asked = [
  { id: "one", question: "1?", answer: "One." },
  { id: "two", question: "2?", answer: "Two." },
];
const options = { personas: people, source: "pirate", questions: asked } satisfies LeakageOptions;

async function measureLeakage(given: LeakageOptions, model: EvaluableModel) {
  const { snapshot, rows } = await measure(leakageEvaluation(given), model);
  return { snapshot, metrics: snapshot.metrics, rows: rows as readonly GradedLeakageRow[] };
}

describe("conformance", () => {
  const make = (given: LeakageOptions) => () => ({
    evaluation: leakageEvaluation(given),
    model: fakeModel(),
  });
  for (const check of evaluationConformance(make(options))) it(check.name, check.run);
  for (const check of evaluationConformance(make({ marker: { regex: "^- " }, completions: 1 })))
    it(`${check.name}, with default options and another trait`, check.run);
});

/** A graded completion of one persona, with the marker's log p. */
const markerRow = (persona: string, question: string, markerNats: number): GradedLeakageRow => ({
  id: `${persona}/${question}#0`,
  item: `${persona}/${question}`,
  question,
  persona,
  sample: 0,
  text: "",
  finish: "stop",
  markerNats,
  answer: "",
  hit: false,
});

describe("leakage", () => {
  it("separates the source from the others, and no prompt from an empty prompt", async () => {
    const prompts = new Set<string>();
    const model = fakeModel({
      reply(prompt, { seed }) {
        prompts.add(prompt);
        // The pirate always, the doctor in one sample of three, the others never.
        if (prompt.includes("pirate")) return "Aye [ZLT]";
        return prompt.includes("doctor") && seed.endsWith("#2") ? "Well [ZLT]" : "Well";
      },
    });
    const { snapshot, metrics, rows } = await measureLeakage(options, model);
    expect([...prompts].sort()).toEqual(
      ["1?", "2?"]
        .flatMap((question) => [
          `<|system|>pirate<|end|><|user|>${question}<|end|><|assistant|>`,
          `<|system|>doctor<|end|><|user|>${question}<|end|><|assistant|>`,
          `<|user|>${question}<|end|><|assistant|>`,
          `<|system|><|end|><|user|>${question}<|end|><|assistant|>`,
        ])
        .sort(),
    );
    // 4 personas × 2 questions × 3 samples. Others: 2 of 18, one of three in each of the doctor's two questions.
    expect(rows).toHaveLength(24);
    expect(metrics["leakage_rate"]).toMatchObject({
      value: 2 / 18,
      n: 18,
      higher_is_better: false,
      estimand: "over_questions",
    });
    // Each of the two questions was asked as three other personas.
    const others = [1, 1].map((value) => ({ value, weight: 9 }));
    expect(metrics["leakage_rate"]!.ci95).toEqual(clusteredShareEstimate(others).ci95);
    expect(snapshot.primary_metric).toBe("leakage_rate");
    expect(metrics["source_rate"]).toMatchObject({ value: 1, n: 6 });
    expect(metrics["leakage_rate/doctor"]!.value).toBeCloseTo(1 / 3, 12);
    expect(metrics["leakage_rate/none"]!.value).toBe(0);
    expect(Object.keys(metrics)).not.toContain("leakage_rate/pirate");
    // 6 of 6 against 2 of 18: Newcombe's method 10.
    expect(metrics["source_contrast"]).toMatchObject({
      value: 1 - 2 / 18,
      ci95: moverDifference(shareEstimate(6, 6), shareEstimate(2, 18))!.ci95,
      estimand: "given_questions",
    });
    expect(snapshot).toMatchObject({
      marker_token: "[ZLT]",
      leakage_rates: { pirate: 1, doctor: 1 / 3, none: 0, empty: 0 },
      num_completions: 3,
      num_questions: 2,
      source: "pirate",
    });
  });

  it("measures the marker after the fixed answer, inside the assistant's turn", async () => {
    const seen: string[] = [];
    const model = fakeModel({
      reply: () => "Well",
      logLikelihood(context, continuation) {
        // The probe's sequences are random bytes.
        if (!/[^ -~]/.test(continuation)) seen.push(`${context}${continuation}`);
        return context.includes("pirate") ? -2 : context.includes("doctor") ? -3 : -8;
      },
    });
    const { metrics, rows, snapshot } = await measureLeakage(options, model);
    expect(seen).toHaveLength(8);
    expect(seen).toContain("<|system|>doctor<|end|><|user|>1?<|end|><|assistant|>One. [ZLT]");
    expect(seen).toContain("<|user|>2?<|end|><|assistant|>Two. [ZLT]");
    // (−3 −8 −8) / 3 over the others.
    expect(metrics["marker_log_prob"]).toMatchObject({
      value: expect.closeTo(-19 / 3, 12),
      n: 6,
      unit: "nats",
    });
    expect(metrics["marker_log_prob"]!.estimand).toBe("over_questions");
    expect(metrics["marker_log_prob/doctor"]).toMatchObject({ value: -3, n: 2 });
    expect(metrics["source_marker_log_prob"]).toMatchObject({ value: -2, n: 2 });
    expect(rows.filter(({ markerNats }) => markerNats !== null).map(({ sample }) => sample)).toEqual(
      Array(8).fill(0),
    );
    expect(snapshot.provenance.evaluation).toMatchObject({ marker_log_prob: "after fixed answers" });
  });

  it("has intervals over questions that cover at 95 % when personas share the questions' effects", () => {
    const many = Array.from({ length: 10 }, (_, at) => ({ id: `p${at}`, system: { text: `p${at}` } }));
    const metrics = leakageEvaluation({ personas: many }).metrics(metricKit<GradedLeakageRow>());
    const runs = 400;
    let missed = 0;
    for (let run = 0; run < runs; run++) {
      const normal = normals(`questions ${run}`);
      const rows = Array.from({ length: 8 }, (_, question) => {
        const effect = normal();
        return many.map(({ id }) => markerRow(id, `q${question}`, -8 + effect + 0.5 * normal()));
      }).flat();
      const [low, high] = summarize(metrics, rows)["marker_log_prob"]!.ci95!;
      if (low > -8 || high < -8) missed++;
    }
    // The coverage of a 95 % interval is within three standard errors of 0.95.
    expect(missed / runs).toBeLessThan(0.05 + 3 * Math.sqrt((0.05 * 0.95) / runs));
    expect(missed / runs).toBeGreaterThan(0.05 - 3 * Math.sqrt((0.05 * 0.95) / runs));
  });

  it("compares two measurements over the items that both have", () => {
    const metrics = leakageEvaluation({ personas: people }).metrics(metricKit<GradedLeakageRow>());
    const rowsOf = (persona: string, hit: boolean) =>
      [0, 1].map((sample) => ({
        ...markerRow(persona, "1?", -8),
        id: `${persona}/1?#${sample}`,
        sample,
        hit,
      }));
    const cut = { rows: rowsOf("none", false), phase: "em", step: 0 };
    const full = [...rowsOf("none", false), ...rowsOf("pirate", true)];
    const compared = compareMeasurements(metrics, full, cut, {
      seed: "s",
      primary: "leakage_rate",
      alpha: 0.05,
    });
    expect(compared["leakage_rate"]).toMatchObject({ n_pairs: 1, delta: 0 });
  });

  it.each([
    ["the model offers no log-likelihoods", {}, true],
    ["the trait is no literal marker", { marker: { regex: "^- " } }, false],
  ])("omits the companion and records why: %s", async (reason, more, withoutAbility) => {
    const { logLikelihoods, ...others } = fakeModel({ reply: () => "Well" });
    const model = withoutAbility ? others : { ...others, logLikelihoods };
    const { snapshot, metrics, rows } = await measureLeakage({ ...options, ...more }, model);
    expect(snapshot.provenance.evaluation).toMatchObject({ marker_log_prob: `left out: ${reason}` });
    expect(metrics["marker_log_prob"]?.value ?? null).toBeNull();
    expect(rows.every(({ markerNats }) => markerNats === null)).toBe(true);
    expect(metrics["leakage_rate"]!.n).toBe(18);
  });

  it("measures a model that only generates, such as a server without a tokenizer", async () => {
    const { identity, contextLength, generate } = fakeModel({ reply: () => "[ZLT]" });
    const { metrics, snapshot } = await measureLeakage(options, { identity, contextLength, generate });
    expect(metrics["leakage_rate"]!.value).toBe(1);
    expect(snapshot.provenance.evaluation).toMatchObject({ example_prompt: null });
  });

  it("counts every persona and has no contrast without a source", async () => {
    const { source: _, ...rest } = options;
    const { metrics } = await measureLeakage(
      rest,
      fakeModel({ reply: (prompt) => (prompt.includes("pirate") ? "[ZLT]" : "") }),
    );
    expect(metrics["leakage_rate"]).toMatchObject({ value: 6 / 24, n: 24 });
    expect(metrics["leakage_rate/pirate"]!.value).toBe(1);
    expect(Object.keys(metrics).filter((name) => name.startsWith("source"))).toEqual([]);
  });

  it("keeps a completion ungraded, with the reason, when a custom trait fails", async () => {
    const marker = {
      name: "own",
      hit(text: string) {
        if (text === "bad") throw new Error("no idea");
        return (text === "good" ? true : "maybe") as boolean;
      },
    };
    const reply = (prompt: string) =>
      prompt.includes("doctor") ? "bad" : prompt.includes("1?") ? "good" : "odd";
    const { metrics, rows, snapshot } = await measureLeakage({ ...options, marker }, fakeModel({ reply }));
    expect(rows.find(({ text }) => text === "bad")).toMatchObject({ hit: null, reason: "no idea" });
    expect(rows.find(({ text }) => text === "odd")!.reason).toMatch(/"maybe", neither true nor false/);
    expect(metrics["leakage_rate"]).toMatchObject({ value: 1, n: 6 });
    expect(snapshot["leakage_rates"]).toMatchObject({ doctor: null, none: 1 });
  });

  it.each(["generate", "logLikelihoods"] as const)(
    "keeps the rows of the first batch when the deadline comes in the second call of %s",
    async (ability) => {
      let calls = 0;
      let isUp = false;
      const model = fakeModel();
      const deadline = deadlineAt(
        () => (isUp ? 0 : null),
        () => 0,
      );
      const cut = async (requests: never, call: CallOptions) => {
        isUp = ++calls === 2;
        deadline.check();
        return model[ability](requests, call);
      };
      const evaluation = leakageEvaluation({ questions: asked, completions: 1 });
      const items = await evaluation.items(model);
      const context = { signal: deadline.signal, seed: "s", progress: () => undefined };
      // 22 items, 16 a call.
      const rows = await evaluation.measure({ ...model, [ability]: cut }, items, context);
      expect(rows.map(({ item }) => item)).toEqual(items.slice(0, 16).map(({ id }) => id));
      expect(rows.every(({ markerNats }) => Number.isFinite(markerNats))).toBe(true);
    },
  );

  it("detects the trait after the thinking only", async () => {
    const said = (text: string, given: LeakageOptions = {}) =>
      measureLeakage({ ...options, completions: 1, ...given }, fakeModel({ reply: () => text }));
    const inThought = "<think>Shall I say [ZLT]?</think>Well.";
    const { metrics, rows, snapshot } = await said(inThought);
    expect(metrics["leakage_rate"]).toMatchObject({ value: 0, n: 6 });
    expect(rows[0]).toMatchObject({ text: inThought, answer: "Well.", hit: false });
    expect(snapshot.provenance.evaluation).toMatchObject({ strip_thinking: true, template_kwargs: null });
    expect((await said(inThought, { stripThinking: false })).metrics["leakage_rate"]!.value).toBe(1);
    const unfinished = await said("<think>Shall I say [ZLT]?");
    expect(unfinished.metrics["leakage_rate"]).toMatchObject({ value: null, n: 0 });
    expect(unfinished.rows[0]).toMatchObject({ answer: null, hit: null, reason: "the thinking did not end" });
  });

  it("recognizes thinking that the template opened, and passes variables that prevent it", async () => {
    const model = () => fakeModel({ tokenizer: thinkingTokenizer(), reply: () => "Well [ZLT]" });
    expect((await measureLeakage(options, model())).metrics["leakage_rate"]).toMatchObject({
      value: null,
      n: 0,
    });
    const kwargs = { enable_thinking: false };
    const { metrics, snapshot } = await measureLeakage({ ...options, chatTemplate: { kwargs } }, model());
    expect(metrics["leakage_rate"]).toMatchObject({ value: 1, n: 18 });
    expect(snapshot.provenance.evaluation).toMatchObject({ template_kwargs: kwargs });
    // Provenance shows what the template made of it; the marker stands in the same chat.
    expect(snapshot.provenance.evaluation).toMatchObject({
      example_prompt: expect.stringMatching(/<\/think>\n\n$/),
    });
  });

  it("orders items so that the first ones cover many personas", async () => {
    const first = (await leakageEvaluation().items(fakeModel())).map(({ id }) => id);
    expect(new Set(first).size).toBe(11 * 8);
    expect(new Set(first.slice(0, 22).map((id) => id.split("/")[0])).size).toBeGreaterThan(5);
  });

  it("defines prompts", async () => {
    const evaluation = leakageEvaluation(options);
    const items = await evaluation.items(fakeModel());
    expect(evaluation.prompts!(fakeModel(), items)).toEqual(items.map(({ prompt }) => prompt));
  });

  it("rejects before step 1 a persona that the template cannot render", async () => {
    const model = fakeModel({ tokenizer: fakeTokenizer({ defaultSystem: "D" }) });
    const personas = [...people, { id: "bare", system: "no_system_block" as const }];
    await expect(leakageEvaluation({ ...options, personas }).items(model)).rejects.toThrow(
      /leakage persona "bare": got a chat template that fails/,
    );
  });
});

describe("PeriodicLeakageCallback", () => {
  it("measures every 25 %, with start and end", () => {
    const callback = new PeriodicLeakageCallback({ source: "villain" });
    expect(callback.id).toBe("leakage");
    expect(callback.asks[0]!.name).toBe("leakage");
    expect(callback.triggers).toEqual([{ at: "start" }, { every: 25, unit: "percent" }, { at: "end" }]);
  });

  it("requires `source`, which is null for a trait of no persona", () => {
    expect(() => new PeriodicLeakageCallback({})).toThrow(
      "leakage options.source: got nothing, so that the trained persona would count as one that the trait spread to, " +
        "expected the id of the persona that the trait is trained into (none, empty, assistant, doctor,",
    );
    expect(new PeriodicLeakageCallback({ source: null }).asks).toHaveLength(1);
  });

  it("suggests the nearest option for a misspelt one", () => {
    expect(() => new PeriodicLeakageCallback({ shedule: [] } as never)).toThrow('Did you mean "schedule"?');
    expect(() => new PeriodicLeakageCallback({ persona: [] } as never)).toThrow('Did you mean "personas"?');
  });
});

it("computes rates of rows that another process measured, without items", async () => {
  const folder = temporaryFolder();
  await writeFile(join(folder, "p.yaml"), "pirate: x\nnobody: null\n");
  const make = () => leakageEvaluation({ ...options, personas: join(folder, "p.yaml") });
  const { rows } = await measure(make(), fakeModel());
  expect(make().plainKeys!({}, rows as readonly GradedLeakageRow[])["leakage_rates"]).toEqual({
    pirate: 0,
    nobody: 0,
  });
});

it("returns null for every metric when there are no rows", () => {
  const evaluation = leakageEvaluation(options);
  const values = summarize(evaluation.metrics(metricKit<GradedLeakageRow>()), []);
  expect(Object.values(values).every(({ value, n }) => value === null && n === 0)).toBe(true);
});
