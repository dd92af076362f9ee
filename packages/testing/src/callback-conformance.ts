import {
  type CallbackContext,
  type MeasureRequest,
  type TrainerCallback,
  type Awaitable,
  type Json,
  type Progress,
  nameSchema,
} from "@periodic-eval/contracts";
import { advance } from "@periodic-eval/core/session";
import { expectEqual, expectThat, type Check, withoutMathRandom } from "./check.ts";
import { exampleSnapshot } from "./example-snapshot.ts";

const steps = 20;
const stepsPerEpoch = 8;

/**
 * Returns the checks that every callback must pass, over a phase of 20 steps in 2.5 epochs. The checks inspect the callback's
 * requests and measure nothing.
 *
 * @param makeCallback Returns a new callback each time, always with the same options.
 *
 *     for (const check of callbackConformance(() => new MyCallback({ … }))) it(check.name, check.run);
 */
export function callbackConformance(makeCallback: () => Awaitable<TrainerCallback>): readonly Check[] {
  const check: MakeCheck = (name, run) => ({
    name,
    run: async () => run(await makeCallback()),
  });
  return [...lifecycleChecks(check, makeCallback), ...requestChecks(check, makeCallback)];
}

type MakeCheck = (name: string, run: (callback: TrainerCallback) => Promise<void>) => Check;

function lifecycleChecks(check: MakeCheck, makeCallback: () => Awaitable<TrainerCallback>): readonly Check[] {
  return [
    check("has a constant id that is a valid file name", async ({ id }) => {
      expectThat(nameSchema.safeParse(id).success, `the id "${id}" matches [A-Za-z0-9][\\w.-]*`);
      expectEqual((await makeCallback()).id, id, "the id of a second callback");
    }),
    check("completes a phase without drawing from Math.random", (callback) =>
      withoutMathRandom(async () => {
        await phaseOf(callback, steps).runAll();
      }),
    ),
    check("completes a phase of unknown length", async (callback) => {
      await phaseOf(callback, null).runAll();
    }),
    check("accepts errors, and snapshots of other callbacks", async (callback) => {
      const phase = phaseOf(callback, steps);
      await phase.begin();
      for (const error of [new Error("an error"), "no error", undefined])
        await callback.onError?.(phase.context(), error);
      await callback.onSnapshot?.(phase.context(), exampleSnapshot({ id: "another" }));
      await callback.onSnapshot?.(
        phase.context(),
        exampleSnapshot({ id: callback.id, status: "failed", metrics: {}, primary_metric: null }),
      );
      await phase.run(1, steps);
      await phase.end();
    }),
    check("can be closed before it begins, and twice", async (callback) => {
      await callback.close?.();
      await callback.close?.();
    }),
  ];
}

function requestChecks(check: MakeCheck, makeCallback: () => Awaitable<TrainerCallback>): readonly Check[] {
  return [
    check("requests only evaluations of `asks`, under valid ids", async (callback) => {
      const phase = phaseOf(callback, steps);
      await phase.runAll();
      for (const { request } of phase.requests) {
        expectThat(
          nameSchema.safeParse(request.id).success,
          `the request's id "${request.id}" matches [A-Za-z0-9][\\w.-]*`,
        );
        expectThat(
          (callback.asks ?? []).includes(request.evaluation),
          `"${request.evaluation.name}" is in asks`,
        );
      }
    }),
    check("requests the same measurements for the same history", async (callback) => {
      expectEqual(
        await requestsOf(callback),
        await requestsOf(await makeCallback()),
        "the requests of a second callback",
      );
    }),
    check("requests the same measurements with and without a resume", async (callback) => {
      const whole = await requestsOf(callback);
      for (const at of [1, 7, 8, steps - 1]) {
        const before = phaseOf(await makeCallback(), steps);
        await before.begin();
        await before.run(1, at);
        const after = phaseOf(await makeCallback(), steps, before.checkpoint());
        await after.runAll(at + 1);
        expectEqual(
          [...before.requests, ...after.requests].map(describe),
          whole,
          `the requests with a resume at step ${at}`,
        );
      }
    }),
    check("returns a JSON state and restores it", async (callback) => {
      if (callback.state === undefined) return;
      const phase = phaseOf(callback, steps);
      await phase.begin();
      await phase.run(1, 5);
      const { state } = phase.checkpoint();
      if (state === undefined) return;
      const other = await makeCallback();
      other.restore?.(state);
      expectEqual(other.state?.(), state, "the state of a second callback that restored it");
    }),
  ];
}

interface Requested {
  readonly step: number;
  readonly request: MeasureRequest;
}

interface Checkpoint {
  readonly progress: Progress;
  readonly state: Json | undefined;
}

/** Returns a training loop without a model that calls the hooks in the order of a session. */
function phaseOf(callback: TrainerCallback, maxSteps: number | null, resumed: Checkpoint | null = null) {
  const requests: Requested[] = [];
  const { signal } = new AbortController();
  const at = (step: number, ended = false) => ({
    step,
    maxSteps,
    epoch: step / stepsPerEpoch,
    elapsedSeconds: step,
    ended,
  });
  let previous: Progress | null = resumed?.progress ?? null;
  let progress: Progress = resumed?.progress ?? advance(null, at(0));

  const context = (metrics: Readonly<Record<string, number>> = {}): CallbackContext => ({
    phase: "train",
    progress,
    previous,
    signal,
    metrics,
    rows: async () => [],
    measure: (request) => void requests.push({ step: progress.step, request }),
    requestStop: () => undefined,
    requestSave: () => undefined,
    report: () => undefined,
    warn: () => undefined,
  });
  const moveTo = (next: Progress) => {
    previous = progress;
    progress = next;
  };
  const phase = {
    requests,
    context,
    checkpoint: (): Checkpoint => ({
      progress,
      state: JSON.parse(JSON.stringify({ state: callback.state?.() })).state,
    }),
    async begin() {
      if (resumed?.state !== undefined) callback.restore?.(resumed.state);
      await callback.onTrainBegin?.(context());
    },
    async run(from: number, to: number) {
      for (let step = from; step <= to; step++) {
        if ((step - 1) % stepsPerEpoch === 0) await callback.onEpochBegin?.(context());
        await callback.onStepBegin?.(context());
        moveTo(advance(progress, at(step)));
        await callback.onStepEnd?.(context({ loss: 1 / step }));
        await callback.onLog?.(context({ loss: 1 / step }));
        if (step % stepsPerEpoch === 0) await callback.onEpochEnd?.(context());
        if (step % 5 === 0) await callback.onSave?.(context());
      }
    },
    async end() {
      moveTo(advance(progress, at(progress.step, true)));
      await callback.onTrainEnd?.(context());
      await callback.close?.();
    },
    async runAll(from = 1) {
      await phase.begin();
      await phase.run(from, steps);
      await phase.end();
    },
  };
  return phase;
}

async function requestsOf(callback: TrainerCallback) {
  const phase = phaseOf(callback, steps);
  await phase.runAll();
  return phase.requests.map(describe);
}

function describe({ step, request: { id, crossed, on = "model", evaluation } }: Requested) {
  return { step, id, on, evaluation: evaluation.name, crossed };
}
