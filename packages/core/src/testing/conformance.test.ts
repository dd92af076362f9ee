// Every suite must be able to fail: each mutant below breaks one promise, and the check of that promise names it.
import { describe, expect, it } from "vitest";
import type { TrainerCallback } from "../contracts/callback.ts";
import { defineEvaluation } from "../evaluations/kit/define.ts";
import type { AnyEvaluation, MeasureContext, Row } from "../contracts/evaluation.ts";
import type { Guard } from "../contracts/guard.ts";
import type { EvaluableModel } from "../contracts/model.ts";
import type { SnapshotStore } from "../contracts/snapshot.ts";
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
    ["forgets rows", () => ({ rows: async () => [] }), "gives back what was put, unknown keys included"],
    [
      "lists backwards",
      (store) => ({ list: async () => [...(await store.list())].reverse() }),
      "lists by phase in order of appearance, then step, then id",
    ],
    [
      "does not set aside",
      () => ({ supersede: async () => undefined }),
      "sets aside, after which the key is free",
    ],
    [
      "confuses phases",
      (store) => ({
        get: async ({ id, step }) => (await store.list()).find((s) => s.id === id && s.step === step) ?? null,
      }),
      "tells names with dots, underscores and digits apart",
    ],
    [
      "takes anything for a name",
      (store) => ({
        put: (s, rows) =>
          store.put(
            { ...s, phase: s.phase.replaceAll("/", "-").replace(/^\W+/, ""), id: s.id.replaceAll("/", "-") },
            rows,
          ),
      }),
      "refuses names that lead out of the run",
    ],
  ];
  it.each(mutants)("one that %s is caught", async (_, mutate, name) => {
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
      "scores with nothing from Math.random",
    ],
    [
      "answers in another order",
      (m) => ({ logLikelihoods: async (r, o) => [...(await m.logLikelihoods!(r, o))].reverse() }),
      "logLikelihoods: scores a request alike alone, in a batch and in another order",
    ],
    [
      "is not normalised",
      (m) => ({
        nextToken: async (r, o) =>
          (await m.nextToken!(r, o)).map((one) => ({ ...one, nats: one.nats.map((x) => x / 2) })),
      }),
      "nextToken: gives a distribution over the vocabulary, and its entropy",
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
      "logLikelihoods: gives one token what nextToken gives it",
    ],
    [
      "cuts in silence",
      (m) => ({
        nextToken: async (r, o) => (await m.nextToken!(r, o)).map((one) => ({ ...one, truncatedTokens: 0 })),
      }),
      "nextToken: cuts a prompt that is too long on the left, and says how much",
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
      "generate: samples by its own seed, whatever stands beside it",
    ],
    [
      "ignores an abort",
      (m) => ({ nextToken: (r) => m.nextToken!(r, { signal: new AbortController().signal }) }),
      "nextToken: stops at an aborted signal",
    ],
  ];
  it.each(mutants)("one that %s is caught", async (_, mutate, name) => {
    const model = fakeModel({ contextLength: 128 });
    expect(await failing(modelConformance(() => ({ ...model, ...mutate(model) })))).toContain(name);
  });
});

describe("guard", () => {
  it.each<[string, Guard, string]>([
    ["sees nothing", fakeGuard(), "catches what it is there for"],
    [
      "cries wolf",
      fakeGuard({
        observe: (() => {
          let n = 0;
          return () => `${n++}`;
        })(),
      }),
      "sees no disturbance where there is none",
    ],
    ["speaks for another", { ...fakeGuard({ name: "a" }), name: "b" }, "gives evidence in its own name"],
  ])("one that %s is caught", async (_, guard, name) => {
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

/** An item a call; what was said until an abort. */
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
      "reaches past its needs",
      { items: (model) => ((model as EvaluableModel).tokenizer, items) },
      "gives items of distinct ids, the same each time",
    ],
    ["wants what it needs", { wants: ["generate"] }, "has a name, a version and needs that exist"],
    ["wants what is none", { wants: ["speech" as never] }, "has a name, a version and needs that exist"],
    [
      "tells one prompt for all its items",
      { prompts: () => [{ text: "?" }] },
      "tells a prompt of each item, the same each time",
    ],
    [
      "tells prompts by their place",
      { prompts: (_, some) => (some as Row[]).map((__, at) => ({ text: `${at}` })) },
      "tells a prompt of each item, the same each time",
    ],
    [
      "repeats an id",
      { items: () => [...items, items[0]!] },
      "gives items of distinct ids, the same each time",
    ],
    [
      "draws from Math.random",
      { measure: async (m, some, c) => (Math.random(), honest.measure(m as never, some as never, c)) },
      "measures the same again, with nothing from Math.random",
    ],
    [
      "lets items see each other",
      { measure: async (_, some) => (some as Row[]).map(({ id }) => ({ id, said: `${some.length}` })) },
      "measures an item alike with fewer beside it: a budget may cut them",
    ],
    [
      "ignores an abort",
      { measure: async (_, some) => (some as Row[]).map(({ id }) => ({ id, said: "" })) },
      "stops at an aborted signal",
    ],
    [
      "throws its rows away at a deadline",
      { measure: (...given) => oneByOne(given, ({ signal }) => signal.throwIfAborted()) },
      "keeps, at a deadline, the first rows as they are without one",
    ],
    [
      "gives rows that miss something at a deadline",
      {
        measure: async (...given) => {
          const rows = await oneByOne(given);
          return given[2].signal.aborted ? rows.map((row) => ({ ...row, said: null })) : rows;
        },
      },
      "keeps, at a deadline, the first rows as they are without one",
    ],
    [
      "drops what it measured when it grades",
      { grade: async (rows) => (rows as Row[]).map(({ id }) => ({ id, good: true })) },
      "grades a row to the row and more, and again the same",
    ],
    [
      "loses a row when it grades",
      { grade: async (rows) => rows.slice(1) },
      "grades a row to the row and more, and again the same",
    ],
    [
      "rests on what JSON loses",
      { grade: async (rows) => (rows as Row[]).map((row) => ({ ...row, at: new Date(0) })) },
      "grades a row to the row and more, and again the same",
    ],
    [
      "draws from Math.random when it grades",
      { grade: async (rows) => (Math.random(), rows) },
      "grades a row to the row and more, and again the same",
    ],
    [
      "draws from Math.random in a metric",
      { metrics: ({ mean }) => ({ noise: mean(() => Math.random()) }) },
      "has metrics that stand on rows as JSON gives them back",
    ],
    [
      "gives more rows than it says",
      {
        measure: async (...given) => {
          const rows = await honest.measure(...(given as Parameters<typeof honest.measure>));
          return rows.flatMap((row) => [1, 2].map((n) => ({ ...row, id: `${row.id} ${n}` })));
        },
      },
      "measures the same again, with nothing from Math.random",
    ],
    ["has no metric", { metrics: () => ({}) }, "has metrics that stand on rows as JSON gives them back"],
  ];
  it.each(mutants)("one that %s is caught", async (_, changes, name) => {
    expect(await failing(evaluationConformance(make(changes)))).toContain(name);
  });
});

describe("callback", () => {
  /** Asks every fifth step, by what `previous` says. */
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
    ["counts its own calls", counting, "goes on after a resume as if there had been none"],
    ["does not take its state back", forgetful, "gives a state that JSON holds, and takes it back"],
    [
      "asks for what it did not say",
      () => ({ ...everyFive(), asks: [] }),
      "asks only for what it said it may ask, under valid names",
    ],
    ["has no file name", () => ({ id: "a/b" }), "has a name that can stand in a file name, always the same"],
    [
      "draws from Math.random",
      () => ({ id: "a", onLog: () => void Math.random() }),
      "lives through a phase without drawing from Math.random",
    ],
    [
      "needs a known length",
      () => ({ id: "a", onStepEnd: ({ progress }) => void progress.maxSteps!.toFixed() }),
      "bears a phase of unknown length",
    ],
    [
      "throws on another's error",
      () => ({ id: "a", onError: (_, error) => void (error as Error).message.length }),
      "bears errors and snapshots of others",
    ],
    [
      "cannot be closed before it began",
      () => ({ id: "a", close: () => Promise.reject(new Error("not open")) }),
      "can be closed before it began, and twice",
    ],
  ])("one that %s is caught", async (_, makeCallback, name) => {
    expect(await failing(callbackConformance(makeCallback))).toContain(name);
  });
});
