import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { PeriodicCapabilityCallback } from "../../config/callbacks.ts";
import { PeriodicEvalError, type AnyEvaluation, type EvaluableModel } from "@periodic-eval/contracts";
import { everyPercent } from "../../schedule/triggers.ts";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { openSession, withSession } from "../loop/session.ts";

/** Returns the message that `begin` throws for an evaluation. */
async function messageFor(changes: Partial<AnyEvaluation>, model?: EvaluableModel): Promise<string> {
  const toy = toyTraining();
  const callback = new PeriodicCallback({ ...toyEvaluation(), ...changes }, { schedule: [], id: "watch" });
  const session = openSession(toy.options([callback], model && { model }));
  const error = await session.begin().then(
    () => new Error("nothing"),
    (thrown: Error) => thrown,
  );
  await session.close();
  expect(await toy.store.list()).toEqual([]);
  return error.message;
}

it("names an ability that the model lacks, and the models that offer it, before step 1", async () => {
  const { identity, contextLength, tokenizer } = toyTraining().model;
  expect(await messageFor({}, { identity, contextLength, tokenizer })).toBe(
    '[periodic-eval] callback "watch", evaluation "toy": got the model "fake" of engine "fake" with tokenizer, ' +
      'expected a model with the ability "generate". ' +
      "It is offered by models in memory (`inMemory` of @periodic-eval/tfjs) and every server.",
  );
});

it("names the nearest ability for an unknown one", async () => {
  expect(await messageFor({ needs: ["generates"] })).toContain('needs[0]: got "generates"');
  expect(await messageFor({ needs: ["generates"] })).toContain('Did you mean "generate"?');
});

it("throws for no items, and for items without ids or with repeated ids", async () => {
  expect(await messageFor({ items: () => [] })).toContain(
    'callback "watch", evaluation "toy" items: got no items',
  );
  expect(await messageFor({ items: () => [{ id: "a" }, { id: "b" }, { id: "a" }] })).toContain(
    'the id "a" twice (again at index 2)',
  );
  expect(await messageFor({ items: () => [{ id: "a" }, {} as never] })).toContain(
    "the id undefined at index 1",
  );
  expect(await messageFor({ items: () => "none" as never })).toContain(
    "got string, expected an array of items",
  );
  expect(await messageFor({ items: () => [{ id: "a", big: 1n } as never] })).toContain(
    "expected items that JSON can hold",
  );
});

it("throws before anything is measured for a name or version that is not a string", async () => {
  expect(await messageFor({ version: 1 as never })).toContain(
    'evaluation "toy".version: got 1, expected a non-empty string',
  );
  expect(await messageFor({ version: "" })).toContain('version: got "", expected a non-empty string');
  expect(await messageFor({ name: undefined as never })).toContain("name: got undefined");
  expect(await messageFor({ samplesPerItem: 0 })).toContain("samplesPerItem: got 0");
});

it("names the evaluation whose items are cyclic", async () => {
  const cyclic: { readonly id: string; self?: unknown } = { id: "q0" };
  cyclic.self = cyclic;
  const toy = toyTraining();
  const callback = new PeriodicCallback({ ...toyEvaluation(), items: () => [cyclic] }, { schedule: [] });
  await expect(openSession(toy.options([callback])).begin()).rejects.toMatchObject({
    where: 'callback "toy", evaluation "toy" items',
    expected: "items that JSON can hold",
  });
});

it('requires a model with a base for on: "base"', async () => {
  const toy = toyTraining();
  const callback = new PeriodicCallback(toyEvaluation(), { schedule: [], on: "base" });
  const session = openSession(toy.options([callback]));
  await expect(session.begin()).rejects.toThrow('on: "base" with the model "fake", which has no base');
});

it('measures the base with on: "base"', async () => {
  const toy = toyTraining();
  const base = toyTraining();
  base.weights = 500;
  const callbacks = [
    new PeriodicCallback(toyEvaluation(), { schedule: [], id: "adapted", atEnd: false }),
    new PeriodicCallback(toyEvaluation(), { schedule: [], id: "base", on: "base", atEnd: false }),
  ];
  await withSession(
    toy.options(callbacks, { model: { ...toy.model, base: base.model } }),
    async (session) => void (await session.begin()),
  );
  expect((await toy.store.list()).map(({ id, on }) => [id, on])).toEqual([
    ["adapted", "model"],
    ["base", "base"],
  ]);
  expect(base.model.calls.generate).toBe(1);
});

const missing = { questions: "/nowhere/questions.jsonl", schedule: [everyPercent(50)] };

it("throws for a missing file before step 1", async () => {
  const toy = toyTraining();
  const session = openSession(toy.options([new PeriodicCapabilityCallback(missing)]));
  await expect(session.begin()).rejects.toThrow('"/nowhere/questions.jsonl", which does not exist');
});

it("makes items once, and again for a model with another tokenizer", async () => {
  const toy = toyTraining();
  let made = 0;
  const evaluation = { ...toyEvaluation(), items: () => [{ id: `q${made++}`, text: "?" }] };
  let { model } = toy as { model: EvaluableModel };
  const options = toy.options([new PeriodicCallback(evaluation, { schedule: [everyPercent(10)] })], {
    model: () => model,
  });
  await withSession(options, async (session) => {
    await session.begin();
    for (let step = 0; step < 3; step++) await session.stepEnd();
    expect(made).toBe(1);
    model = { ...model, tokenizer: { ...toy.model.tokenizer, fingerprint: "another" } };
    await session.stepEnd();
    expect(made).toBe(2);
  });
});

it("checks an evaluation that is not in `asks` when it is requested", async () => {
  const toy = toyTraining();
  const requesting = {
    id: "requesting",
    onTrainBegin: ({ measure }: { measure(request: object): void }) =>
      measure({ id: "x", evaluation: { ...toyEvaluation(), needs: ["telepathy"] }, crossed: [] }),
  };
  await withSession(toy.options([requesting as never]), async (session) => void (await session.begin()));
  expect(await toy.store.list()).toMatchObject([
    { id: "x", status: "failed", reason: expect.stringContaining('"telepathy"') as unknown },
  ]);
});

it("checks the model once, and throws before step 1 if its numbers cannot be trusted", async () => {
  const toy = toyTraining();
  const callbacks = () =>
    ["a", "b"].map(
      (id) => new PeriodicCallback({ ...toyEvaluation(), name: id }, { schedule: [everyPercent(50)], id }),
    );
  let checks = 0;
  const model = { ...toy.model, check: async () => void (checks += 1) };
  await withSession(toy.options(callbacks(), { model }), async () => {});
  expect(checks).toBe(1);

  const wrong = {
    ...toy.model,
    async check() {
      throw new Error("packed scores differ");
    },
  };
  const session = openSession(toyTraining().options(callbacks(), { model: wrong }));
  await expect(session.begin()).rejects.toThrow("packed scores differ");
});

it("ignores a check that an abort interrupted", async () => {
  const toy = toyTraining();
  const controller = new AbortController();
  const model = {
    ...toy.model,
    async check() {
      controller.abort();
      throw new PeriodicEvalError({
        code: "aborted",
        where: "check",
        got: "an abort",
        expected: "none",
        fix: "",
      });
    },
  };
  const callback = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(50)] });
  await withSession(toy.options([callback], { model, signal: controller.signal }), async () => {});
  expect((await toy.store.list()).filter(({ status }) => status === "failed")).toEqual([]);
});

it("checks the grader once before step 1, and ignores an abort in the middle", async () => {
  const toy = toyTraining();
  let checks = 0;
  const evaluation: AnyEvaluation = { ...toyEvaluation(), check: async () => void (checks += 1) };
  const callbacks = ["one", "two"].map((id) => new PeriodicCallback(evaluation, { schedule: [], id }));
  await withSession(toy.options(callbacks), async (session) => void (await session.begin()));
  expect(checks).toBe(1);

  expect(await messageFor({ check: () => Promise.reject(new Error("the judge is away")) })).toBe(
    "the judge is away",
  );

  const abort = new AbortController();
  const check = ({ signal }: { signal: AbortSignal }) => {
    abort.abort();
    return Promise.reject(signal.reason as Error);
  };
  const other = toyTraining();
  const callback = new PeriodicCallback({ ...toyEvaluation(), check }, { schedule: [] });
  await withSession(other.options([callback], { signal: abort.signal }), async (session) => {
    await session.begin();
  });
});

it("begins without the probe of a model that does not answer, and leaves it to the measurements", async () => {
  const toy = toyTraining();
  const model = { ...toy.model, logLikelihoods: () => new Promise<never>(() => undefined) };
  const callback = new PeriodicCallback(toyEvaluation(), { schedule: [] });
  await withSession(toy.options([callback], { model, patienceSeconds: 0.05 }), async (session) => {
    toy.step();
    await session.stepEnd();
  });
  expect((await toy.store.list()).map(({ status, warnings }) => [status, warnings])).toEqual([
    ["complete", []],
    ["complete", []],
  ]);
});
