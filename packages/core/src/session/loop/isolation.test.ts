// Evaluations of one window share the model, its answers and the session's signal. None reaches the numbers of another.
import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { TrainerCallback } from "../../contracts/callback.ts";
import type { AnyEvaluation } from "../../contracts/evaluation.ts";
import type { EvaluableModel } from "../../contracts/model.ts";
import { toyEvaluation, toyTraining } from "../../testing/toy-training.ts";
import { withSession } from "./session.ts";
import { half, statuses, train } from "./toy-run.test-data.ts";

/** Trains with an honest evaluation and others. Returns the honest one's snapshots, and the warnings. */
async function honestWith(others: readonly TrainerCallback[], abort?: AbortController) {
  const toy = toyTraining();
  const honest = toyEvaluation({
    name: "honest",
    items: 9,
    graded: true,
    onGrade: (signal) => signal.throwIfAborted(),
  });
  const callbacks = [...others, half(honest)];
  const options = toy.options(callbacks, abort === undefined ? {} : { signal: abort.signal });
  await withSession(options, train(toy));
  const snapshots = (await toy.store.list())
    .filter(({ id }) => id === "honest")
    .map(({ step, status, metrics, provenance }) => ({ step, status, metrics, provenance }));
  return { snapshots, warnings: toy.warnings() };
}

const evil = (changes: Partial<AnyEvaluation>) => half({ ...toyEvaluation({ name: "evil" }), ...changes });

it("gives each evaluation the model's own answers, whatever another does to the same answers", async () => {
  const refused: unknown[] = [];
  const measure: AnyEvaluation["measure"] = async (model, asked, { signal, seed }) => {
    const { generate } = model as unknown as Required<EvaluableModel>;
    const sampling = { maxNewTokens: 4, temperature: 0, seed };
    const requests = asked.map(({ text }) => ({ prompt: { text: text as string }, sampling }));
    const replies = generate(requests, { signal });
    // The answers to other prompts would be kept for these.
    for (const request of requests) request.prompt.text = "another prompt";
    for (const reply of await replies)
      try {
        (reply as { text: string }).text = "zzz";
      } catch (error) {
        refused.push(error);
      }
    return asked.map(({ id }) => ({ id, reply: "a", hit: true }));
  };
  const { snapshots } = await honestWith([evil({ measure })]);
  expect(snapshots).toEqual((await honestWith([])).snapshots);
  expect(refused.length).toBe(3 * 8);
});

it("records the model's own identity when an evaluation writes to it", async () => {
  const refused: unknown[] = [];
  const { items } = toyEvaluation();
  const renaming: AnyEvaluation["items"] = (model, ...rest) => {
    try {
      (model.identity as { name: string }).name = "another";
    } catch (error) {
      refused.push(error);
    }
    return items(model, ...rest);
  };
  const toy = toyTraining();
  await withSession(toy.options([evil({ items: renaming })]), train(toy));
  const recorded = (await toy.store.list()).map(({ provenance }) => provenance.model);
  expect(recorded).toMatchObject([{ name: "fake" }, { name: "fake" }, { name: "fake" }]);
  expect(toy.model.identity.name).toBe("fake");
  expect(refused).toContainEqual(expect.any(TypeError));
});

const spoils: readonly [string, (signal: AbortSignal) => unknown][] = [
  ["loses its prototype", (signal) => void Object.setPrototypeOf(signal, null)],
  ["claims to be aborted", (signal) => void Object.defineProperty(signal, "aborted", { value: true })],
  ["cannot dispatch", (signal) => void Object.defineProperty(signal, "dispatchEvent", { value: null })],
];
it.each(spoils)("measures and grades as without an evaluation whose signal %s", async (_, spoil) => {
  const check: AnyEvaluation["check"] = async ({ signal }) => void spoil(signal);
  const grade = async (rows: readonly object[], { signal }: { readonly signal: AbortSignal }) => (
    spoil(signal),
    rows
  );
  const both = evil({ check, grade: grade as never });
  const abort = new AbortController();
  const { snapshots } = await honestWith([both], abort);
  expect(snapshots).toEqual((await honestWith([])).snapshots);
  expect(() => abort.abort()).not.toThrow();
});

it("reports an abort listener that throws, with the name of its callback", async () => {
  const toy = toyTraining();
  const abort = new AbortController();
  const listens: TrainerCallback = {
    id: "listens",
    onTrainBegin: ({ signal }) =>
      signal.addEventListener("abort", () => {
        throw new Error("from a listener");
      }),
  };
  const measuring = new PeriodicCallback(
    toyEvaluation({
      onMeasure(signal) {
        signal.addEventListener("abort", () => {
          throw new Error("from a measurement");
        });
        abort.abort();
      },
    }),
    { schedule: [], id: "measuring" },
  );
  const options = toy.options([listens, measuring], { signal: abort.signal });
  await withSession(options, async (session) => void (await session.begin()));
  await new Promise((resolve) => setImmediate(resolve));
  const warnings = toy.warnings().join("\n");
  expect(warnings).toMatch(/callback "listens": a timer, event or stream .* threw: from a listener/);
  expect(warnings).toMatch(/callback "measuring": a timer, event or stream .* threw: from a measurement/);
});

it.each(["toString", "constructor", "hasOwnProperty"])("measures with a callback named %s", async (id) => {
  const toy = toyTraining();
  const callback = half(toyEvaluation(), id);
  const state = await withSession(toy.options([callback]), async (session) => {
    await train(toy, 6)(session);
    return session.save();
  });
  await withSession(toy.options([half(toyEvaluation(), id)], { resume: state }), train(toy, 4));
  expect((await toy.store.list()).map((one) => [one.id, one.step])).toEqual(
    [0, 5, 6, 10].map((step) => [id, step]),
  );
  expect(toy.warnings()).toEqual([]);
});

it.each(["onStepEnd", "onLog", "onSnapshot", "onError", "state", "close"])(
  "warns of a hook %s whose getter throws in the middle of training, and continues",
  async (hook) => {
    const toy = toyTraining();
    const evaluation = toyEvaluation({
      onMeasure() {
        throw new Error("no answers");
      },
    });
    let isTraining = false;
    const failing: TrainerCallback = {
      id: "failing",
      onTrainBegin: ({ measure }) => measure({ id: "failed", evaluation, crossed: [] }),
      get [hook]() {
        if (isTraining) throw new Error("not ready");
        return undefined;
      },
    };
    const also = { id: "also", onTrainBegin: () => void (isTraining = true) };
    await withSession(toy.options([failing, also, half(toyEvaluation())]), async (session) => {
      await train(toy)(session);
      await session.log({ loss: 1 });
      await session.save();
    });
    const warnings = toy.warnings().filter((text) => text.includes("not ready"));
    expect(warnings[0]).toContain('callback "failing"');
    expect(await statuses(toy)).toEqual([
      "failed 0 failed",
      "toy 0 complete",
      "toy 5 complete",
      "toy 10 complete",
    ]);
  },
);

it("warns of a requested evaluation whose name or version cannot be read, and continues", async () => {
  for (const key of ["name", "version"]) {
    const toy = toyTraining();
    const evaluation = Object.defineProperty({ ...toyEvaluation() }, key, {
      get() {
        throw new Error("not ready");
      },
    });
    const asking: TrainerCallback = {
      id: "asking",
      onStepEnd: ({ measure }) => measure({ id: "asked", evaluation, crossed: [] }),
    };
    await withSession(toy.options([asking]), train(toy));
    expect(toy.warnings()[0]).toBe('callback "asking": onStepEnd threw at step 1: not ready');
  }
});
