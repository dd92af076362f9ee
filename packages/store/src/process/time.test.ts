import { PeriodicCallback, everyPercent, withSession } from "@periodic-eval/core";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { late, withinTime } from "../../../core/src/grading/judge/judge-calls.ts";
import { Timeouts } from "../../../core/src/session/window/timeouts.ts";
import { toyEvaluation, toyTraining } from "../../../testing/src/toy-training.test-data.ts";
import { resolvesWithin, startTimeout, workingSeconds, limitedTime } from "./time.ts";

const clock = vi.hoisted(() => ({ paused: 0 }));
vi.mock("#platform", async (original) => ({
  ...(await original<object>()),
  pausedSeconds: () => clock.paused,
}));

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Stops the process: timers that were due meanwhile fire when it goes on. */
async function pause(seconds: number): Promise<void> {
  clock.paused += seconds;
  await vi.advanceTimersByTimeAsync(1000 * seconds);
}

/** Passes seconds of work without an event. */
const spend = (seconds: number) => vi.advanceTimersByTime(1000 * seconds);

it("stands still during pauses, and does not jump with the system's clock", async () => {
  const began = workingSeconds();
  spend(2);
  await pause(75);
  vi.setSystemTime(Date.now() + 3 * 3_600_000);
  vi.setSystemTime(Date.now() - 4 * 3_600_000);
  expect(workingSeconds() - began).toBeCloseTo(2, 9);
});

/** Trains ten steps of 1 s with eleven measurements of 0.5 s, and returns their outcomes. */
async function trainWith(during: (step: number) => void) {
  const toy = toyTraining();
  let step = 0;
  const evaluation = toyEvaluation({
    onMeasure() {
      spend(0.5);
      during(step);
    },
  });
  const callback = new PeriodicCallback(evaluation, { schedule: [everyPercent(10)] });
  const budget = { overheadPercent: 1, graceSeconds: 6 };
  await withSession(toy.options([callback], { budget }), async (session) => {
    for (step = 1; step <= 10; step += 1) {
      spend(1);
      toy.step();
      await session.stepEnd();
    }
  });
  const rounded = (seconds: number | null) => (seconds === null ? null : Number(seconds.toFixed(6)));
  const outcomes = (await toy.store.list()).map(({ status, timing }) => ({
    status,
    seconds: rounded(timing.measure_seconds),
    overhead: rounded(timing.overhead_percent),
  }));
  return { outcomes, warnings: toy.warnings() };
}

it("charges a pause of 75 s in the start's, a middle and the last measurement to nobody, and reports each once", async () => {
  const undisturbed = await trainWith(() => undefined);
  expect(undisturbed.outcomes).toHaveLength(11);
  const paused = await trainWith((step) => {
    if (![0, 5, 10].includes(step)) return;
    clock.paused += 75;
    spend(75);
  });
  expect(paused.outcomes).toEqual(undisturbed.outcomes);
  expect(paused.outcomes.map(({ status }) => status)).toEqual(Array(11).fill("complete"));
  expect(undisturbed.warnings).toEqual([]);
  const sentence =
    'session of phase "train": paused for 75 s, which counts neither as training nor as measuring';
  expect(paused.warnings).toEqual([sentence, sentence, sentence]);
});

it("measures the same when the system's clock jumps 3 hours forward and 1 hour back", async () => {
  const undisturbed = await trainWith(() => undefined);
  const jumping = await trainWith((step) => {
    if (step === 2) vi.setSystemTime(Date.now() + 3 * 3_600_000);
    if (step === 7) vi.setSystemTime(Date.now() - 3_600_000);
  });
  expect(jumping).toEqual(undisturbed);
});

it("calls onTimeUp after the seconds in which the process was not paused", async () => {
  const onTimeUp = vi.fn();
  startTimeout(60, onTimeUp);
  await vi.advanceTimersByTimeAsync(10_000);
  await pause(75);
  await vi.advanceTimersByTimeAsync(49_000);
  expect(onTimeUp).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1000);
  expect(onTimeUp).toHaveBeenCalledOnce();
});

it.each<[string, (work: Promise<string>) => Promise<unknown>]>([
  [
    "a judge's timeout",
    (work) => withinTime(new AbortController().signal, 60, late("judge", 60), () => work),
  ],
  ["a wait for user code", (work) => resolvesWithin(work, 60)],
  [
    "the patience with a hook",
    async (work) =>
      new Timeouts(60, { warn: () => undefined }).run(
        { where: "a callback", what: "a hook", heartbeat: { at: 0 } },
        () => work,
      ),
  ],
])("does not end %s because the process was paused", async (_, wait) => {
  let resolve: (reply: string) => void = () => undefined;
  const result = wait(new Promise((done) => (resolve = done)));
  await vi.advanceTimersByTimeAsync(10_000);
  await pause(75);
  resolve("a reply");
  expect([true, "a reply"]).toContain(await result);
});

it("ends work at its limit, refuses more once such work in a row took the sum, and returns results and errors unchanged", () => {
  const limited = limitedTime("the pattern", { one: 0.05, all: 0.1 });
  const slow = () => limited(() => /(a+)+$/u.test(`${"a".repeat(50)}!`));
  expect(limited(() => 7)).toBe(7);
  const fault = new Error("own");
  expect(() =>
    limited(() => {
      throw fault;
    }),
  ).toThrow(fault);
  const isSlow = "the pattern takes more than 0.05 s for this text";
  expect(slow).toThrow(isSlow);
  expect(limited(() => 8)).toBe(8);
  expect(slow).toThrow(isSlow);
  expect(slow).toThrow(isSlow);
  expect(slow).toThrow("not run, because the pattern took 0.1 s for the texts before");
});
