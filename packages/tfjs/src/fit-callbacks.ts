import * as z from "zod";
import type { Awaitable, Control, Session, SessionState } from "@periodic-eval/core";
import { isRecord, parseOptions, functionSchema } from "@periodic-eval/contracts/options";
import { orderCallbacks, standsBehindCallbacks } from "./causal-lm/layers-model.ts";

/**
 * The used part of `tf.CustomCallbackArgs` and of `tf.Callback`; avoids a dependency on the layers library. Values of `logs` are
 * numbers, or scalar tensors in an array with `tf.Callback`s.
 */
export interface FitCallbacks {
  onTrainBegin(): Promise<void>;
  onEpochBegin(epoch: number): Promise<void>;
  onEpochEnd(epoch: number, logs?: Readonly<Record<string, unknown>>): Promise<void>;
  onBatchBegin(): Promise<void>;
  onBatchEnd(batch: number, logs?: Readonly<Record<string, unknown>>): Promise<void>;
  onTrainEnd(): Promise<void>;
  /** Called in an array with `tf.Callback`s. */
  setParams(params: object): void;
  setModel(): void;
}

export interface FitCallbacksOptions {
  /** Writes a checkpoint when a callback requests one. Without it such requests are ignored. */
  readonly save?: (state: SessionState) => Awaitable<void>;
}

/** The parameters that the layers library passes to `setParams`, and to a plain-object callback in `this`. */
interface FitParams {
  readonly epochs?: number;
  readonly initialEpoch?: number | null;
  /** Set by `fitDataset` with a dataset of known size. */
  readonly steps?: number | null;
  /** Set by `fit`. */
  readonly samples?: number | null;
  readonly batchSize?: number | null;
}

const optionsSchema = z.strictObject({
  save: functionSchema("a function of the session's state").optional(),
} satisfies Record<keyof FitCallbacksOptions, z.ZodType>);

/**
 * Returns callbacks that drive a session from `model.fit` or `model.fitDataset`: `begin` with the number of steps of the call,
 * `stepEnd` after every batch with its loss and metrics, `log` after every epoch with the logs that batches lack, such as
 * `val_loss`, and `end` after the last epoch. A request to stop sets `model.stopTraining`.
 *
 * Pass the result alone or in an array, also one with `tf.Callback`s:
 *
 *     await model.fit(x, y, { callbacks: [fitCallbacks(session, model), tf.callbacks.earlyStopping({ monitor: "val_loss" })] });
 *
 * `tf.Callback`s are called first; a plain object beside them is refused before the first batch.
 *
 * - A functional model that `fromLayersModel` does not know needs its array in a constant before the call, or `tf.Callback`s first.
 * - If `fitDataset` does not know the size of its dataset, `maxSteps` is null until the first epoch has ended.
 * - The layers library ignores a request to stop before the first batch. It still trains that batch and then stops. A baseline
 *   that an abort interrupted is then a `skipped` snapshot.
 * - A callback that throws skips `onTrainEnd`; `withSession` then calls `fail`.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function fitCallbacks(
  session: Session,
  model: { stopTraining: boolean },
  options: FitCallbacksOptions = {},
): FitCallbacks {
  parseOptions("fitCallbacks options", optionsSchema, options);
  let params: FitParams = {};
  let startStep = 0;
  let startEpoch = 0;
  let firstEpoch: number | null = null;
  let epoch = 0;
  let stepsPerEpoch: number | null = null;
  let stepsThisEpoch = 0;
  let wantsStop = false;
  let batchMetrics: Readonly<Record<string, number>> = {};

  const maxSteps = (): number | null => {
    if (stepsPerEpoch === null || params.epochs === undefined) return null;
    return startStep + (params.epochs - (firstEpoch ?? params.initialEpoch ?? 0)) * stepsPerEpoch;
  };
  const applyControl = async ({ stop, save }: Control): Promise<void> => {
    if (save !== null && session.brokenReceipt === null && options.save) {
      const state = await session.save();
      // The hooks and windows of `save` may have disturbed the weights.
      if (session.brokenReceipt === null) await options.save(state);
    }
    if (stop !== null) wantsStop = true;
    if (wantsStop) model.stopTraining = true;
  };

  const callbacks: FitCallbacks = {
    // The layers library calls a plain object's functions as methods of its callback object, which holds the parameters.
    async onTrainBegin(this: { readonly params?: FitParams } | void) {
      params = (typeof this === "object" && this.params) || params;
      stepsPerEpoch = knownSteps(params);
      ({ step: startStep, epoch: startEpoch } = session.progress);
      await applyControl(await session.begin({ maxSteps: maxSteps() }));
    },
    async onEpochBegin(index) {
      // The parameters of `fitDataset` do not contain the initial epoch.
      firstEpoch ??= index;
      if (index > epoch && stepsThisEpoch > 0) stepsPerEpoch ??= stepsThisEpoch;
      epoch = index;
      stepsThisEpoch = 0;
    },
    async onBatchBegin() {
      if (wantsStop) model.stopTraining = true;
      await session.stepBegin();
    },
    async onEpochEnd(_, logs = {}) {
      const metrics = Object.entries(await numbersIn(logs)).filter(([name]) => !(name in batchMetrics));
      if (metrics.length > 0) await session.log(Object.fromEntries(metrics));
    },
    async onBatchEnd(batch, logs = {}) {
      batchMetrics = await numbersIn(logs);
      stepsThisEpoch = batch + 1;
      const fraction = stepsPerEpoch === null ? 0 : Math.min(1, stepsThisEpoch / stepsPerEpoch);
      const control = await session.stepEnd({
        epoch: startEpoch + epoch - (firstEpoch ?? 0) + fraction,
        maxSteps: maxSteps(),
        metrics: batchMetrics,
      });
      await applyControl(control);
    },
    async onTrainEnd() {
      await session.end();
    },
    setParams(parameters) {
      params = parameters;
    },
    setModel() {},
  };
  standsBehindCallbacks(callbacks);
  orderCallbacks(model);
  return callbacks;
}

function knownSteps({ steps, samples, batchSize }: FitParams): number | null {
  if (steps) return steps;
  return samples && batchSize ? Math.ceil(samples / batchSize) : null;
}

/** Returns loss and metrics, without the index and size of the batch. Downloads scalar tensors, and leaves them to the layers library. */
async function numbersIn(logs: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, number>>> {
  const numbers: Record<string, number> = {};
  for (const [name, value] of Object.entries(logs)) {
    if (name === "batch" || name === "size") continue;
    if (typeof value === "number") numbers[name] = value;
    else if (isScalar(value)) numbers[name] = (await value.data())[0]!;
  }
  return numbers;
}

const isScalar = (value: unknown): value is { data(): Promise<ArrayLike<number>> } =>
  isRecord(value) && typeof value["data"] === "function";
