import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import {
  type TrainerCallback,
  PeriodicEvalError,
  type AnyEvaluation,
  type EvaluableModel,
  type Guard,
  type GuardContext,
  type Session,
  type SessionOptions,
} from "@periodic-eval/contracts";
import { everyPercent } from "../../schedule/triggers.ts";
import { fakeGuard } from "@periodic-eval/testing";
import {
  gate,
  toyEvaluation,
  toyTraining,
  type ToyTraining,
} from "../../../../testing/src/toy-training.test-data.ts";
import { withSession } from "../loop/session.ts";

const train =
  (toy: ToyTraining, steps = 10) =>
  async (session: Session) => {
    let stop = (await session.begin()).stop;
    for (let step = 0; step < steps && stop === null; step++) {
      toy.step();
      ({ stop } = await session.stepEnd());
    }
    return stop;
  };

/** Changes the weights while it measures at step 5. */
function disturbing(toy: ToyTraining, name: string, items: number) {
  let windows = 0;
  const evaluation = toyEvaluation({
    name,
    items,
    onMeasure() {
      if (++windows === 2) toy.weights += 1;
    },
  });
  return new PeriodicCallback(evaluation, { schedule: [everyPercent(50)] });
}

const healthy = (name: string, items: number) =>
  new PeriodicCallback(toyEvaluation({ name, items }), { schedule: [everyPercent(50)] });

it("measures all requests of a step in one window, fewest items first, each inside the guards", async () => {
  const toy = toyTraining();
  const log: string[] = [];
  const say = (line: string) => void log.push(line);
  const evaluation = (name: string, items: number) =>
    new PeriodicCallback(toyEvaluation({ name, items, onMeasure: () => say(name) }), {
      schedule: [],
      atEnd: false,
    });
  const guards = [fakeGuard({ name: "outer", log: say }), fakeGuard({ name: "inner", log: say })];
  await withSession(toy.options([evaluation("large", 9), evaluation("small", 3)], { guards }), train(toy, 1));
  const each = (name: string) => ["enter outer", "enter inner", name, "leave inner", "leave outer"];
  expect(log).toEqual([...each("small"), ...each("large")]);
});

it("leaves guards in reverse order if the measurement throws, and keeps its receipt", async () => {
  const toy = toyTraining();
  const log: string[] = [];
  const guards = ["outer", "inner"].map((name) => fakeGuard({ name, log: (line) => void log.push(line) }));
  const evaluation = toyEvaluation({
    onMeasure() {
      throw new Error("no memory");
    },
  });
  const callback = new PeriodicCallback(evaluation, { schedule: [], atEnd: false });
  const native = Math.random;
  await withSession(toy.options([callback], { guards }), train(toy, 1));
  expect(log).toEqual(["enter outer", "enter inner", "leave inner", "leave outer"]);
  expect(Math.random).toBe(native);
  const [snapshot] = await toy.store.list();
  expect(snapshot).toMatchObject({ status: "failed", reason: "no memory" });
  expect(snapshot!.receipt.map(({ part }) => part)).toEqual(["math-random", "outer", "inner"]);
});

it("fails the measurement if a guard cannot be entered, and leaves those before it", async () => {
  const toy = toyTraining();
  const log: string[] = [];
  const refusing: Guard = {
    name: "refusing",
    enter() {
      throw new Error("out of order");
    },
  };
  const guards = [fakeGuard({ name: "outer", log: (line) => void log.push(line) }), refusing];
  await withSession(
    toy.options([new PeriodicCallback(toyEvaluation(), { schedule: [], atEnd: false })], { guards }),
    train(toy, 1),
  );
  expect(log).toEqual(["enter outer", "leave outer"]);
  expect(await toy.store.list()).toMatchObject([
    { status: "failed", reason: 'guard "refusing" could not be entered: out of order' },
  ]);
});

it("breaks the receipt if a guard cannot be left, because its changes may not be restored", async () => {
  const toy = toyTraining();
  const stuck: Guard = {
    name: "mode",
    enter: () => ({
      before: "training",
      leave() {
        throw new Error("stuck");
      },
    }),
  };
  const options = toy.options([new PeriodicCallback(toyEvaluation(), { schedule: [] })], { guards: [stuck] });
  expect(await withSession(options, train(toy))).toBe(
    'guard "mode" saw training disturbed by the measurement "toy" at step 0',
  );
});

it("replaces Math.random by the same seeded stream in every run, and leaves training's stream alone", async () => {
  const drawn = async () => {
    const toy = toyTraining();
    const numbers: number[] = [];
    const draw = () => void numbers.push(Math.random());
    const callback = new PeriodicCallback(toyEvaluation({ onMeasure: draw }), { schedule: [], atEnd: false });
    const hooking: TrainerCallback = { id: "hooking", onStepEnd: draw };
    await withSession(toy.options([callback, hooking]), train(toy, 2));
    const [snapshot] = await toy.store.list();
    return { numbers, note: snapshot!.receipt[0]!.note };
  };
  const first = await drawn();
  expect(first.numbers.length).toBe(3);
  expect(new Set(first.numbers).size).toBe(3);
  expect(first.note).toBe("served 1 draw from a seeded stream");
  expect(await drawn()).toEqual(first);
});

it("gives evaluations and callbacks repeatable random numbers that are not training's", async () => {
  const native = Math.random;
  let ofTraining = 0;
  Math.random = () => {
    ofTraining += 1;
    return native();
  };
  try {
    const drawn = async () => {
      const toy = toyTraining();
      const numbers: number[] = [];
      const draw = () => void numbers.push(Math.random());
      const plain = toyEvaluation({ graded: true });
      const evaluation: AnyEvaluation = {
        ...plain,
        items: (model: never) => (draw(), plain.items(model)),
        provenance: () => (draw(), 1),
        metrics: (kit) => (draw(), plain.metrics(kit)),
        plainKeys: () => (draw(), {}),
      };
      const callback = Object.assign(new PeriodicCallback(evaluation, { schedule: [] }), {
        restore: draw,
        state: () => (draw(), 1),
        onError: draw,
        onLog() {
          throw new Error("for onError");
        },
      });
      const model = () => (draw(), toy.model);
      await withSession(toy.options([callback], { model }), async (session) => {
        await session.stepEnd({ metrics: {} });
        await session.save();
      });
      return numbers;
    };
    const first = await drawn();
    expect(ofTraining).toBe(0);
    expect(new Set(first).size).toBeGreaterThan(5);
    expect(await drawn()).toEqual(first);
  } finally {
    Math.random = native;
  }
});

it("calls the model function once per window, and measures that model in all measurements", async () => {
  const toy = toyTraining();
  const steps: number[] = [];
  const seen: unknown[] = [];
  const model = ({ step }: { readonly step: number }) => {
    steps.push(step);
    return { ...toy.model, identity: { ...toy.model.identity, name: `model ${steps.length}` } };
  };
  await withSession(toy.options([healthy("a", 2), healthy("b", 3)], { model }), train(toy));
  for (const { step, provenance } of await toy.store.list())
    seen.push([step, (provenance.model as { name: string }).name]);
  // The first call is for the checks before step 1.
  expect(steps).toEqual([0, 0, 5, 10]);
  expect(seen).toEqual([0, 5, 10].flatMap((step, at) => [1, 2].map(() => [step, `model ${at + 2}`])));
});

it("passes the evidence of one measurement to the guards of the next", async () => {
  const toy = toyTraining();
  const seen: (GuardContext["justLeft"] | undefined)[] = [];
  const inner = fakeGuard({ name: "weights", observe: () => `w${toy.weights}` });
  const guard: Guard = {
    name: "weights",
    enter(context) {
      seen.push(context.justLeft);
      return inner.enter(context);
    },
  };
  await withSession(toy.options([healthy("a", 2), healthy("b", 3)], { guards: [guard] }), train(toy, 1));
  expect(seen).toEqual([
    undefined,
    expect.objectContaining({ after: "w0" }),
    undefined,
    expect.objectContaining({ after: "w7" }),
  ]);
});

const broken = async (onBrokenReceipt: NonNullable<SessionOptions["onBrokenReceipt"]>) => {
  const toy = toyTraining();
  const callbacks = [healthy("before", 2), disturbing(toy, "rogue", 4), healthy("after", 6)];
  const running = withSession(toy.options(callbacks, { onBrokenReceipt }), train(toy));
  const result = await running.catch((error: unknown) => error);
  const at5 = (await toy.store.list()).filter(({ step }) => step === 5);
  return { toy, result, at5: Object.fromEntries(at5.map((snapshot) => [snapshot.id, snapshot])) };
};

it('requests a stop that names the guard and the measurement, with onBrokenReceipt "stop"', async () => {
  const { toy, result, at5 } = await broken("stop");
  expect(result).toBe('guard "weights" saw training disturbed by the measurement "rogue" at step 5');
  expect(at5["before"]).toMatchObject({ status: "complete" });
  expect(at5["before"]!.receipt.every(({ intact }) => intact)).toBe(true);
  expect(at5["rogue"]).toMatchObject({ status: "complete" });
  expect(at5["rogue"]!.receipt.find(({ part }) => part === "weights")).toMatchObject({ intact: false });
  expect(at5["after"]).toMatchObject({ status: "complete" }); // skipped in the window, measured at the end
  expect(at5["after"]!.crossed).toEqual(["every 50 percent: 50", "end"]);
  expect(toy.warnings()).toEqual([
    expect.stringContaining('guard "weights": training was disturbed by the measurement "rogue" at step 5'),
  ]);
});

it('throws from stepEnd with guards left and the snapshot kept, with onBrokenReceipt "throw"', async () => {
  const { result, at5 } = await broken("throw");
  expect(PeriodicEvalError.is(result, "receipt")).toBe(true);
  expect((result as Error).message).toContain('the measurement "rogue" at step 5');
  expect(at5["rogue"]!.receipt.find(({ part }) => part === "weights")).toMatchObject({ intact: false });
  expect(at5["after"]).toMatchObject({
    status: "skipped",
    reason: 'not measured: "rogue" had broken the guard "weights"',
  });
});

it('continues the run and the window, with onBrokenReceipt "record"', async () => {
  const { toy, result, at5 } = await broken("record");
  expect(result).toBeNull();
  expect(at5["after"]).toMatchObject({ status: "complete" });
  expect(at5["after"]!.weights).not.toBe(at5["before"]!.weights);
  expect((await toy.store.list()).filter(({ step }) => step === 10).length).toBe(3);
});

it("does not break the receipt of a skipped measurement when the one before it broke its receipt", async () => {
  const toy = toyTraining();
  let seconds = 0;
  const expensive = toyEvaluation({ name: "expensive", onMeasure: () => void (seconds += 100) });
  const callbacks = [
    disturbing(toy, "rogue", 4),
    new PeriodicCallback(expensive, { schedule: [everyPercent(50)] }),
  ];
  const budget = { overheadPercent: null, secondsPerWindow: 10 };
  const options = { budget, onBrokenReceipt: "record", clock: () => (seconds += 0.01) } as const;
  await withSession(toy.options(callbacks, options), train(toy));
  const at5 = (await toy.store.list()).filter(({ step }) => step === 5);
  expect(at5.map(({ id, status }) => `${id} ${status}`)).toEqual(["expensive skipped", "rogue complete"]);
  expect(toy.warnings()).toEqual([expect.stringContaining('by the measurement "rogue" at step 5')]);
});

it("records advisory evidence without counting it as a disturbance", async () => {
  const toy = toyTraining();
  let tensors = 0;
  const guard = fakeGuard({ name: "tensors", advisory: true, observe: () => String(tensors++) });
  expect(await withSession(toy.options([healthy("a", 2)], { guards: [guard] }), train(toy))).toBeNull();
  expect((await toy.store.list())[0]!.receipt[1]).toMatchObject({
    part: "tensors",
    intact: false,
    advisory: true,
  });
});

it("measures requests of onSnapshot at the same step", async () => {
  const toy = toyTraining();
  const more = toyEvaluation({ name: "more" });
  const escalating: TrainerCallback = {
    id: "escalating",
    onSnapshot({ measure }, { id, step }) {
      if (id === "toy" && step === 5) measure({ id: "more", evaluation: more, crossed: [] });
    },
  };
  await withSession(toy.options([healthy("toy", 3), escalating]), train(toy));
  expect((await toy.store.list()).filter(({ id }) => id === "more").map(({ step }) => step)).toEqual([5]);
});

it("throws for one id with two evaluations at one step", async () => {
  const toy = toyTraining();
  const requesting = (id: string): TrainerCallback => ({
    id,
    onStepEnd({ measure, progress }) {
      if (progress.step === 1) measure({ id: "same", evaluation: toyEvaluation({ name: id }), crossed: [] });
    },
  });
  await withSession(toy.options([requesting("a"), requesting("b")]), train(toy, 1));
  expect((await toy.store.list()).map(({ id, evaluation }) => [id, evaluation])).toEqual([["same", "a"]]);
  expect(toy.warnings().join()).toContain(
    '"same", which callback "a" requested at this step with another evaluation',
  );
});

it("retries a refused snapshot with the next one", async () => {
  const toy = toyTraining();
  let refusals = 1;
  const store = {
    ...toy.store,
    put: (...args: Parameters<typeof toy.store.put>) =>
      refusals-- > 0 ? Promise.reject(new Error("ENOSPC: no space left on device")) : toy.store.put(...args),
  };
  await withSession(toy.options([healthy("toy", 3)], { run: store }), train(toy));
  expect((await toy.store.list()).map(({ step, status }) => [step, status])).toEqual([
    [0, "complete"],
    [5, "complete"],
    [10, "complete"],
  ]);
  expect(toy.warnings()).toEqual([
    "store: could not write train/toy/0, which will be retried: ENOSPC: no space left on device",
  ]);
});

it("throws after training if the store refuses until the end", async () => {
  const toy = toyTraining();
  const store = { ...toy.store, put: () => Promise.reject(new Error("ENOSPC")) };
  let isTrained = false;
  const running = withSession(toy.options([healthy("toy", 3)], { run: store }), async (session) => {
    await train(toy)(session);
    isTrained = true;
  });
  await expect(running).rejects.toThrow(
    "got 3 snapshots that could not be written (train/toy/0, train/toy/5, train/toy/10)",
  );
  expect(isTrained).toBe(true);
});

it("throws for a loop that does not await the window", async () => {
  const toy = toyTraining();
  const measuring = gate();
  const callback = new PeriodicCallback(toyEvaluation({ onMeasure: () => measuring.passed }), {
    schedule: [],
  });
  await withSession(toy.options([callback], { maxSteps: null }), async (session) => {
    const begun = session.begin();
    await expect(session.stepEnd()).rejects.toThrow("Await session.begin()");
    measuring.open();
    await begun;
  });
});

it("records that a server ran the model, also in a failed measurement, and nothing for a model in this process", async () => {
  for (const isServed of [true, undefined]) {
    const toy = toyTraining();
    let windows = 0;
    const onMeasure = () => {
      if (++windows === 2) throw new Error("no answer");
    };
    const callback = new PeriodicCallback(toyEvaluation({ onMeasure }), { schedule: [everyPercent(50)] });
    const model = { ...toy.model, ...(isServed && { isServed }) };
    await withSession(toy.options([callback], { model }), train(toy));
    const found = await toy.store.list();
    expect(found.map(({ status, served }) => [status, served])).toEqual([
      ["complete", isServed],
      ["failed", isServed],
      ["complete", isServed],
    ]);
    expect("served" in found[0]!).toBe(isServed === true);
  }
});

it("measures a callback on the model that modelOf returns for it at the step", async () => {
  const toy = toyTraining();
  const served = (step: number) => ({
    ...(toy.options([]).model as EvaluableModel),
    isServed: true,
    identity: { name: `adapter ${step}`, engine: "vllm", dtype: "float32", weights: null, adapter: "a" },
  });
  const modelOf: SessionOptions["modelOf"] = ({ id }, { step }) => (id === "far" ? served(step) : null);
  await withSession(toy.options([healthy("near", 3), healthy("far", 3)], { modelOf }), train(toy));
  const { name } = (toy.options([]).model as EvaluableModel).identity;
  const found = (await toy.store.list()).map(({ id, step, served = false, provenance }) => {
    const measured = (provenance.model as { readonly name: string }).name;
    return [id, step, served, measured].join(" ");
  });
  const expected = [0, 5, 10].flatMap((step) => [
    `near ${step} false ${name}`,
    `far ${step} true adapter ${step}`,
  ]);
  expect(found.sort()).toEqual(expected.sort());
});
