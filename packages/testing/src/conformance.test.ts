// Every suite must be able to fail: each mutant below breaks one promise, and the check of that promise must reject.
import { describe, expect, it } from "vitest";
import type {
  TrainerCallback,
  AnyEvaluation,
  MeasureContext,
  Row,
  Guard,
  EvaluableModel,
  SnapshotStore,
} from "@periodic-eval/contracts";
import { defineEvaluation } from "@periodic-eval/core";
import type { Check } from "./check.ts";
import {
  callbackConformance,
  evaluationConformance,
  fakeGuard,
  fakeModel,
  guardConformance,
  memoryStore,
  modelConformance,
  storeConformance,
} from "./index.ts";

async function failing(checks: readonly Check[]): Promise<readonly string[]> {
  const failed: string[] = [];
  for (const { name, run } of checks) await run().catch(() => failed.push(name));
  return failed;
}

describe("store", () => {
  const mutants: [string, (store: SnapshotStore) => Partial<SnapshotStore>, string][] = [
    ["forgets rows", () => ({ rows: async () => [] }), "returns a stored snapshot, with unknown keys"],
    [
      "lists backwards",
      (store) => ({ list: async () => [...(await store.list())].reverse() }),
      "lists by phase in the order of the run, then step, then id",
    ],
    [
      "does not supersede",
      () => ({ supersede: async () => undefined }),
      "supersedes a snapshot, and accepts its key again",
    ],
    [
      "confuses phases",
      (store) => ({
        get: async ({ id, step }) => (await store.list()).find((s) => s.id === id && s.step === step) ?? null,
      }),
      "distinguishes names with dots, underscores and digits",
    ],
    [
      "accepts any name",
      (store) => ({
        put: (s, rows) =>
          store.put(
            { ...s, phase: s.phase.replaceAll("/", "-").replace(/^\W+/, ""), id: s.id.replaceAll("/", "-") },
            rows,
          ),
      }),
      "rejects names that lead out of the run",
    ],
  ];
  it.each(mutants)("detects one that %s", async (_, mutate, name) => {
    const make = () => {
      const store = memoryStore();
      return { ...store, ...mutate(store) };
    };
    expect(await failing(storeConformance(make))).toContain(name);
  });
});

describe("model", () => {
  const mutants: [string, (model: EvaluableModel) => Partial<EvaluableModel>, string][] = [
    [
      "draws from Math.random",
      (m) => ({ generate: (r, o) => (Math.random(), m.generate!(r, o)) }),
      "does not draw from Math.random",
    ],
    [
      "returns results in another order",
      (m) => ({ logLikelihoods: async (r, o) => [...(await m.logLikelihoods!(r, o))].reverse() }),
      "logLikelihoods: scores a request the same alone, in a batch and in another order",
    ],
    [
      "is not normalized",
      (m) => ({
        nextToken: async (r, o) =>
          (await m.nextToken!(r, o)).map((one) => ({ ...one, nats: one.nats.map((x) => x / 2) })),
      }),
      "nextToken: returns a distribution over the vocabulary, and its entropy",
    ],
    [
      "shifts by one token",
      (m) => ({
        nextToken: (r, o) =>
          m.nextToken!(
            r.map(({ prompt, candidates }) => ({
              prompt: { ids: m.tokenizer!.render(prompt).ids.slice(0, -1) },
              candidates,
            })),
            o,
          ),
      }),
      "logLikelihoods: scores one token like nextToken",
    ],
    [
      "cuts without reporting it",
      (m) => ({
        nextToken: async (r, o) => (await m.nextToken!(r, o)).map((one) => ({ ...one, truncatedTokens: 0 })),
      }),
      "nextToken: cuts a long prompt on the left and reports the tokens cut",
    ],
    [
      "ignores its seeds",
      (m) => ({
        generate: (r, o) =>
          m.generate!(
            r.map((one, at) => ({ ...one, sampling: { ...one.sampling, seed: `${at}` } })),
            o,
          ),
      }),
      "generate: samples by the seed of its request, in any batch",
    ],
    [
      "ignores an abort",
      (m) => ({ nextToken: (r) => m.nextToken!(r, { signal: new AbortController().signal }) }),
      "nextToken: rejects for an aborted signal",
    ],
  ];
  it.each(mutants)("detects one that %s", async (_, mutate, name) => {
    const model = fakeModel({ contextLength: 128 });
    expect(await failing(modelConformance(() => ({ ...model, ...mutate(model) })))).toContain(name);
  });
});

describe("guard", () => {
  it.each<[string, Guard, string]>([
    ["sees nothing", fakeGuard(), "detects its disturbance"],
    [
      "reports a disturbance that is none",
      fakeGuard({
        observe: (() => {
          let n = 0;
          return () => `${n++}`;
        })(),
      }),
      "reports no disturbance if there is none",
    ],
    [
      "reports under another name",
      { ...fakeGuard({ name: "a" }), name: "b" },
      "returns evidence under its name",
    ],
  ])("detects one that %s", async (_, guard, name) => {
    expect(await failing(guardConformance(() => guard, { disturb: () => undefined }))).toContain(name);
  });
});

const items = ["a", "b", "c"].map((id) => ({ id }));
const honest = defineEvaluation({
  name: "honest",
  version: "1",
  needs: ["generate"],
  items: () => items,
  async measure(model, some, { signal, seed, progress }) {
    signal.throwIfAborted();
    const sampling = (id: string) => ({ maxNewTokens: 4, temperature: 1, seed: `${seed}/${id}` });
    const said = await model.generate(
      some.map(({ id }) => ({ prompt: { text: id }, sampling: sampling(id) })),
      { signal },
    );
    progress(some.length);
    return some.map(({ id }, at) => ({ id, said: said[at]!.text }));
  },
  metrics: ({ mean }) => ({ length: mean(({ said }) => said.length) }),
});

/** Generates one item per call, and returns the items before an abort. */
async function oneByOne(
  [model, some, context]: Parameters<AnyEvaluation["measure"]>,
  before: (context: MeasureContext) => void = () => undefined,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const item of some as readonly Row[]) {
    before(context);
    if (context.signal.aborted) break;
    rows.push(...(await honest.measure(model as never, [item], { ...context, progress: () => undefined })));
    context.progress(rows.length);
  }
  return rows;
}

describe("evaluation", () => {
  const make =
    (changes: object = {}) =>
    () => ({ evaluation: { ...honest, ...changes } as AnyEvaluation, model: fakeModel() });
  for (const check of evaluationConformance(make())) it(`honest: ${check.name}`, check.run);

  const mutants: [string, Partial<AnyEvaluation>, string][] = [
    [
      "uses an ability that it does not need",
      { items: (model) => ((model as EvaluableModel).tokenizer, items) },
      "returns the same items each time, with distinct ids",
    ],
    [
      "lists an ability in needs and wants",
      { wants: ["generate"] },
      "has a name, a version, and abilities that exist",
    ],
    [
      "wants an unknown ability",
      { wants: ["speech" as never] },
      "has a name, a version, and abilities that exist",
    ],
    [
      "returns one prompt for all items",
      { prompts: () => [{ text: "?" }] },
      "returns one prompt per item, whatever the other items are",
    ],
    [
      "returns prompts by position",
      { prompts: (_, some) => (some as Row[]).map((__, at) => ({ text: `${at}` })) },
      "returns one prompt per item, whatever the other items are",
    ],
    [
      "repeats an id",
      { items: () => [...items, items[0]!] },
      "returns the same items each time, with distinct ids",
    ],
    [
      "draws from Math.random",
      { measure: async (m, some, c) => (Math.random(), honest.measure(m as never, some as never, c)) },
      "repeats its measurement, without drawing from Math.random",
    ],
    [
      "lets items affect each other",
      { measure: async (_, some) => (some as Row[]).map(({ id }) => ({ id, said: `${some.length}` })) },
      "measures an item the same with fewer other items, as a budget may require",
    ],
    [
      "ignores an abort",
      { measure: async (_, some) => (some as Row[]).map(({ id }) => ({ id, said: "" })) },
      "rejects for an aborted signal",
    ],
    [
      "discards its rows at a deadline",
      { measure: (...given) => oneByOne(given, ({ signal }) => signal.throwIfAborted()) },
      "returns the unchanged first rows at a deadline",
    ],
    [
      "returns incomplete rows at a deadline",
      {
        measure: async (...given) => {
          const rows = await oneByOne(given);
          return given[2].signal.aborted ? rows.map((row) => ({ ...row, said: null })) : rows;
        },
      },
      "returns the unchanged first rows at a deadline",
    ],
    [
      "drops measured fields when it grades",
      { grade: async (rows) => (rows as Row[]).map(({ id }) => ({ id, good: true })) },
      "adds fields when it grades, and grades the same again",
    ],
    [
      "loses a row when it grades",
      { grade: async (rows) => rows.slice(1) },
      "adds fields when it grades, and grades the same again",
    ],
    [
      "depends on a value that JSON loses",
      { grade: async (rows) => (rows as Row[]).map((row) => ({ ...row, at: new Date(0) })) },
      "adds fields when it grades, and grades the same again",
    ],
    [
      "draws from Math.random when it grades",
      { grade: async (rows) => (Math.random(), rows) },
      "adds fields when it grades, and grades the same again",
    ],
    [
      "draws from Math.random in a metric",
      { metrics: ({ mean }) => ({ noise: mean(() => Math.random()) }) },
      "computes the same metrics from rows that JSON returns",
    ],
    [
      "returns more rows than samplesPerItem",
      {
        measure: async (...given) => {
          const rows = await honest.measure(...(given as Parameters<typeof honest.measure>));
          return rows.flatMap((row) => [1, 2].map((n) => ({ ...row, id: `${row.id} ${n}` })));
        },
      },
      "repeats its measurement, without drawing from Math.random",
    ],
    ["has no metric", { metrics: () => ({}) }, "computes the same metrics from rows that JSON returns"],
  ];
  it.each(mutants)("detects one that %s", async (_, changes, name) => {
    expect(await failing(evaluationConformance(make(changes)))).toContain(name);
  });
});

describe("callback", () => {
  /** Requests a measurement every fifth step, from `previous`. */
  const everyFive = (): TrainerCallback => ({
    id: "five",
    asks: [honest],
    onStepEnd({ measure, progress, previous }) {
      if (Math.floor(progress.step / 5) > Math.floor((previous?.step ?? 0) / 5))
        measure({ id: "five", evaluation: honest, crossed: [] });
    },
  });
  for (const check of callbackConformance(everyFive)) it(`every five: ${check.name}`, check.run);

  const counting = (): TrainerCallback => {
    let calls = 0;
    return {
      ...everyFive(),
      onStepEnd: ({ measure }) =>
        void (++calls % 5 === 0 && measure({ id: "five", evaluation: honest, crossed: [] })),
    };
  };
  const forgetful = (): TrainerCallback => {
    let seen = 0;
    return { ...everyFive(), onStepEnd: () => void seen++, state: () => seen, restore: () => undefined };
  };
  it.each<[string, () => TrainerCallback, string]>([
    ["counts its own calls", counting, "requests the same measurements with and without a resume"],
    ["does not restore its state", forgetful, "returns a JSON state and restores it"],
    [
      "requests an evaluation that is not in asks",
      () => ({ ...everyFive(), asks: [] }),
      "requests only evaluations of `asks`, under valid ids",
    ],
    [
      "has an id that is not a file name",
      () => ({ id: "a/b" }),
      "has a constant id that is a valid file name",
    ],
    [
      "draws from Math.random",
      () => ({ id: "a", onLog: () => void Math.random() }),
      "completes a phase without drawing from Math.random",
    ],
    [
      "needs a known length",
      () => ({ id: "a", onStepEnd: ({ progress }) => void progress.maxSteps!.toFixed() }),
      "completes a phase of unknown length",
    ],
    [
      "throws on the error of another callback",
      () => ({ id: "a", onError: (_, error) => void (error as Error).message.length }),
      "accepts errors, and snapshots of other callbacks",
    ],
    [
      "cannot be closed before it begins",
      () => ({ id: "a", close: () => Promise.reject(new Error("not open")) }),
      "can be closed before it begins, and twice",
    ],
  ])("detects one that %s", async (_, makeCallback, name) => {
    expect(await failing(callbackConformance(makeCallback))).toContain(name);
  });
});
