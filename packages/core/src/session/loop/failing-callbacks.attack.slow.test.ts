// Hooks and evaluations that throw, reject or never settle. Training ends with the weights of a training without them, each crossed
// threshold has a snapshot, and other measurements have the same numbers.
import fc from "fast-check";
import { expect, it, onTestFinished } from "vitest";
import type { AnyEvaluation, TrainerCallback } from "@periodic-eval/contracts";
import { attack, attackTimeout } from "../../../../testing/src/attack.test-data.ts";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { withSession } from "./session.ts";
import { half, statuses, train } from "./toy-run.test-data.ts";

const hooks =
  "onTrainBegin onEpochBegin onEpochEnd onStepBegin onStepEnd onLog onSave onTrainEnd onSnapshot onError state close".split(
    " ",
  );
/** Stages of an evaluation. An error in `items` or `check` refuses the training. */
const stages = ["measure", "grade", "metrics", "provenance", "plainKeys", "failure", "close"];
const fail = () => {
  throw new Error("failed");
};
const ways = {
  throws: fail,
  rejects: async () => fail(),
  "rejects later": () => new Promise((resolve) => setTimeout(resolve, 5)).then(fail),
  "leaves a rejection": () => void Promise.reject(new Error("left")),
  "never settles": () => new Promise(() => {}),
};
const failing = (names: readonly string[], most: number) =>
  fc.array(
    fc.record({
      name: fc.constantFrom(...names),
      way: fc.constantFrom(...(Object.keys(ways) as (keyof typeof ways)[])),
      /** Every how many calls it fails. */
      every: fc.constantFrom(1, 1, 3),
    }),
    { maxLength: most },
  );
type Failing = ReturnType<typeof failing> extends fc.Arbitrary<infer Value> ? Value : never;

/** Returns functions that fail in their way, and otherwise do what the function of the same name does. */
function failingFunctions(
  list: Failing,
  plain: Readonly<Record<string, unknown>> = {},
): Partial<TrainerCallback> {
  return Object.fromEntries(
    list.map(({ name, way, every }) => {
      let calls = 0;
      const usual = plain[name] as ((...args: unknown[]) => unknown) | undefined;
      return [name, (...args: unknown[]) => (calls++ % every === 0 && ways[way]()) || usual?.(...args)];
    }),
  );
}

async function run(others: readonly TrainerCallback[]) {
  const toy = toyTraining();
  const callbacks = [...others, half(toyEvaluation())];
  const limits = { patienceSeconds: 0.02, budget: { drainSeconds: 0.02 } };
  const stop = await withSession(toy.options(callbacks, limits), async (session) => {
    const reason = await train(toy)(session);
    await session.save();
    return reason;
  });
  const numbers = (await toy.store.list())
    .filter(({ id }) => id === "toy")
    .map(({ step, status, metrics }) => ({ step, status, metrics }));
  return { toy, result: { stop, weights: toy.weights, numbers } };
}

it("trains and measures as without them", { timeout: attackTimeout }, async () => {
  // vitest's own listeners fail a run with unhandled rejections, which late ones are here.
  const listeners = (process as NodeJS.EventEmitter).listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", () => undefined);
  onTestFinished(() => {
    process.removeAllListeners("unhandledRejection");
    for (const listener of listeners) process.on("unhandledRejection", listener as () => void);
  });
  const { result: expected } = await run([]);
  const cases = fc.record({ hooks: failing(hooks, 4), stages: failing(stages, 2), graded: fc.boolean() });
  await attack(100, cases, async (drawn) => {
    const plain = toyEvaluation({ graded: drawn.graded }) as AnyEvaluation &
      Readonly<Record<string, unknown>>;
    const evaluation = { ...plain, ...failingFunctions(drawn.stages, plain) } as AnyEvaluation;
    const { toy, result } = await run([
      { id: "hooks", ...failingFunctions(drawn.hooks) },
      half(evaluation, "evaluation"),
    ]);
    expect(result, toy.warnings().join("\n")).toEqual(expected);
    const found = (await statuses(toy)).filter((text) => text.startsWith("evaluation")).join();
    // A grader that does not settle is waited for until the end; a resume continues it.
    expect(found).toMatch(/^evaluation 0 (\w+),evaluation 5 (\w+),evaluation 10 (\w+)$/);
    expect(found).not.toMatch(/skipped|partial/);
  });
});
