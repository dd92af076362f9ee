// Hooks and evaluations that never settle, and graders that keep the model.
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type {
  CallbackContext,
  TrainerCallback,
  AnyEvaluation,
  EvaluableModel,
  SessionOptions,
} from "@periodic-eval/contracts";
import { gate, toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { openSession, withSession } from "./session.ts";
import { half, statuses, train } from "./toy-run.test-data.ts";

describe("work that does not settle", () => {
  const never = () => new Promise<never>(() => {});
  const soon: Partial<SessionOptions> = { patienceSeconds: 0.02 };

  it.each(["onTrainBegin", "onStepEnd", "onLog", "onSnapshot", "onSave", "state", "onTrainEnd", "close"])(
    "is abandoned with a warning if it is %s, and training continues",
    async (hook) => {
      const toy = toyTraining();
      let calls = 0;
      const faulty = { id: "faulty", [hook]: () => (calls++, never()) };
      const callbacks = [faulty, half(toyEvaluation())];
      await withSession(toy.options(callbacks, soon), async (session) => {
        await train(toy)(session);
        await session.save();
      });
      expect(await statuses(toy)).toEqual(["toy 0 complete", "toy 5 complete", "toy 10 complete"]);
      // It is not called again before it settles.
      expect(calls).toBe(1);
      const warnings = toy.warnings().filter((text) => text.includes('callback "faulty"'));
      expect(warnings.length).toBe(1);
      expect(warnings[0]).toContain(`${hook}, which has not settled and showed no progress for 0.02 s`);
    },
  );

  it.each(["items", "check"])("throws from begin if it is %s", async (stage) => {
    const toy = toyTraining();
    const faulty = half({ ...toyEvaluation(), [stage]: never });
    await expect(withSession(toy.options([faulty], soon), train(toy))).rejects.toMatchObject({
      code: "deadline",
      where: 'callback "toy", evaluation "toy"',
      got: `${stage}, which has not settled and showed no progress for 0.02 s`,
    });
  });

  it("is missing from the snapshots, which say so, if it is saveAtFiring", async () => {
    const toy = toyTraining();
    const options = toy.options([half(toyEvaluation())], { ...soon, saveAtFiring: never });
    await withSession(options, train(toy));
    expect(await statuses(toy)).toEqual(["toy 0 complete", "toy 5 complete", "toy 10 complete"]);
    const [first] = await toy.store.list();
    expect(first!.saved?.error).toContain("saveAtFiring: got the function, which has not settled");
    expect(toy.warnings()[0]).toContain("saveAtFiring: the weights of step 0 are not saved");
  });

  it("is a failed snapshot if it is measure, leaves the guards, and is not measured again before it settles", async () => {
    const toy = toyTraining();
    const late = gate();
    const aborted: boolean[] = [];
    const evaluation = toyEvaluation({
      async onMeasure(signal) {
        if (toy.weights !== 0) return;
        signal.addEventListener("abort", () => aborted.push(true));
        await late.passed;
      },
    });
    const random = Math.random;
    const errors: unknown[] = [];
    const callback = Object.assign(half(evaluation), {
      onError: (_: unknown, error: unknown) => void errors.push(error),
    });
    await withSession(toy.options([callback], soon), async (session) => {
      await session.begin();
      expect(Math.random).toBe(random);
      for (let step = 1; step <= 10; step++) {
        toy.step();
        if (step === 10) {
          late.open();
          await late.passed;
        }
        await session.stepEnd();
      }
    });
    expect(aborted).toEqual([true]);
    expect(await statuses(toy)).toEqual(["toy 0 failed", "toy 5 failed", "toy 10 complete"]);
    const [first, second] = await toy.store.list();
    expect(first!.reason).toContain("showed no progress for 0.02 s");
    expect(first!.receipt.find(({ part }) => part === "weights")).toMatchObject({ intact: true });
    expect(second!.reason).toContain("an abandoned one has not settled");
    expect(errors[0]).toMatchObject({ code: "deadline", where: 'callback "toy"' });
  });

  it("is not abandoned while it calls the model or reports progress", async () => {
    const toy = toyTraining();
    const pause = () => new Promise((resolve) => setTimeout(resolve, 15));
    const evaluation = toyEvaluation();
    const slow: AnyEvaluation = {
      ...evaluation,
      async measure(model: EvaluableModel, items, context) {
        for (let i = 0; i < 4; i++) {
          await pause();
          if (i % 2 === 0) context.progress(0);
          else await model.generate!([], { signal: context.signal });
        }
        return evaluation.measure(model as never, items, context);
      },
    };
    const callback = Object.assign(new PeriodicCallback(slow, { schedule: [], atEnd: false }), {
      async onEpochBegin({ warn }: CallbackContext) {
        for (let i = 0; i < 4; i++) await pause().then(() => warn("working"));
      },
    });
    await withSession(toy.options([callback], { patienceSeconds: 0.04 }), train(toy, 1));
    expect(await statuses(toy)).toEqual(["toy 0 complete"]);
    expect(toy.warnings()).toEqual(Array(4).fill('callback "toy": working'));
  });

  it("is named every minute, and abandoned after ten by default", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const toy = toyTraining();
    const evaluation = toyEvaluation({ onMeasure: never });
    const callback = new PeriodicCallback(evaluation, { id: "faulty", schedule: [], atEnd: false });
    const session = openSession(toy.options([callback]));
    const begun = session.begin();
    await vi.advanceTimersByTimeAsync(601_000 + 10_000);
    await begun;
    const where = 'callback "faulty": measure of "toy" has not settled and showed no progress for';
    expect(toy.warnings().slice(0, 9)).toEqual(
      Array.from({ length: 9 }, (_, i) => `${where} ${i + 1} min; it is abandoned in ${9 - i} min`),
    );
    expect(toy.warnings()[9]).toContain("showed no progress for 600 s");
    expect(toy.warnings().length).toBe(10);
    await session.close();
  });

  it("is not abandoned because something blocked the process, itself included", async () => {
    const toy = toyTraining();
    const block = () => {
      const end = performance.now() + 40;
      while (performance.now() < end);
    };
    const hook: TrainerCallback = {
      id: "slow",
      async onTrainBegin() {
        block();
        await new Promise((resolve) => setTimeout(resolve, 1));
        block();
        await new Promise((resolve) => setTimeout(resolve, 1));
      },
    };
    const evaluation = toyEvaluation();
    const items: AnyEvaluation["items"] = async (model) => (block(), evaluation.items(model));
    const callback = new PeriodicCallback({ ...evaluation, items }, { schedule: [], atEnd: false });
    await withSession(toy.options([hook, callback], soon), train(toy, 0));
    expect(toy.warnings()).toEqual([]);
    expect(await statuses(toy)).toEqual(["toy 0 complete"]);
  });

  it("cannot use its context after it was abandoned", async () => {
    const toy = toyTraining();
    const late = gate();
    const refused: unknown[] = [];
    const faulty: TrainerCallback = {
      id: "faulty",
      async onTrainBegin({ requestStop, measure }) {
        await late.passed;
        for (const use of [
          () => requestStop("late"),
          () => measure({ id: "x", evaluation: toyEvaluation(), crossed: [] }),
        ])
          try {
            use();
          } catch (error) {
            refused.push((error as { code: string }).code);
          }
      },
    };
    await withSession(toy.options([faulty], soon), async (session) => {
      await session.begin();
      late.open();
      await Promise.resolve();
      expect(await train(toy, 2)(session)).toBeNull();
    });
    expect(refused).toEqual(["deadline", "deadline"]);
    expect(await statuses(toy)).toEqual([]);
  });

  it.each([0, -1, Number.NaN, "600"])("refuses a patience of %o", (patienceSeconds) => {
    expect(() => openSession(toyTraining().options([], { patienceSeconds } as never))).toThrow(
      "session options.patienceSeconds",
    );
  });
});

describe("the model", () => {
  it("cannot be called by a grader that kept it from measure", async () => {
    const toy = toyTraining();
    const plain = toyEvaluation({ graded: true });
    let kept: { generate: (...given: unknown[]) => Promise<unknown> };
    const faulty: AnyEvaluation = {
      ...plain,
      measure: (model, ...given) => (
        (kept = model as unknown as typeof kept),
        plain.measure(model, ...given)
      ),
      async grade(rows, context) {
        const prompt = { prompt: { text: "a" }, sampling: { maxNewTokens: 1, temperature: 0, seed: "s" } };
        await kept.generate([prompt], context);
        return rows;
      },
    };
    await withSession(toy.options([half(faulty)]), train(toy, 1));
    const [first] = await toy.store.list();
    expect(first).toMatchObject({ status: "failed" });
    expect(first!.reason).toContain("got a call of the model after measure");
  });
});
