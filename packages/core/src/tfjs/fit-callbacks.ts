import * as z from "zod";
import type { Awaitable } from "../contracts/json.ts";
import type { Control, Session, SessionState } from "../contracts/session.ts";
import { configError } from "../internal/config-error.ts";
import { parseOptions } from "../internal/parse-options.ts";
import { functionSchema } from "../internal/option-schemas.ts";

/** The used part of `tf.CustomCallbackArgs`; avoids a dependency on the layers library. `logs` contains downloaded numbers. */
export interface FitCallbacks {
  onTrainBegin(): Promise<void>;
  onEpochBegin(epoch: number): Promise<void>;
  onBatchBegin(): Promise<void>;
  onBatchEnd(batch: number, logs?: Readonly<Record<string, unknown>>): Promise<void>;
  onTrainEnd(): Promise<void>;
  /** Throws. The layers library calls it if this object is in an array with `tf.Callback`s. */
  setParams(): never;
}

export interface FitCallbacksOptions {
  /** Writes a checkpoint when a callback requests one. Without it such requests are ignored. */
  readonly save?: (state: SessionState) => Awaitable<void>;
}

/** The parameters that the layers library passes to a plain-object callback in `this`. */
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
 * `stepEnd` after every batch with its loss and metrics, `end` after the last. A request to stop sets `model.stopTraining`.
 *
 * The result is a plain object: pass it alone or in an array of plain objects. The layers library does not accept plain objects
 * and `tf.Callback`s in one array: one order throws, the other loses `this`. Its class `tf.CustomCallback` adapts the object:
 *
 *     const callbacks = [tf.callbacks.earlyStopping({ monitor: "loss" }), new tf.CustomCallback(fitCallbacks(session, model))];
 *
 * - If `fitDataset` does not know the size of its dataset, `maxSteps` is null until the first epoch has ended.
 * - The layers library ignores a request to stop before the first batch. It still trains that batch and then stops. A baseline
 *   that an abort interrupted is then a `skipped` snapshot.
 * - A callback that throws skips `onTrainEnd`; `withSession` then calls `fail`.
 *
 * @throws PeriodicEvalError `config` for a wrong option. `model.fit` throws it for this object after a `tf.Callback` in one array.
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

  return {
    // The layers library calls these as methods of its callback object, which holds the parameters.
    async onTrainBegin(this: { readonly params?: FitParams } | void) {
      params = (typeof this === "object" && this.params) || {};
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
    async onBatchEnd(batch, logs = {}) {
      stepsThisEpoch = batch + 1;
      const fraction = stepsPerEpoch === null ? 0 : Math.min(1, stepsThisEpoch / stepsPerEpoch);
      const control = await session.stepEnd({
        epoch: startEpoch + epoch - (firstEpoch ?? 0) + fraction,
        maxSteps: maxSteps(),
        metrics: numbersIn(logs),
      });
      await applyControl(control);
    },
    async onTrainEnd() {
      await session.end();
    },
    setParams() {
      throw configError({
        where: "model.fit",
        path: ["callbacks"],
        got: "the plain object of fitCallbacks in an array with tf.Callbacks",
        expected: "an array of tf.Callbacks",
        fix: "Pass `new tf.CustomCallback(fitCallbacks(session, model))`.",
      });
    },
  };
}

function knownSteps({ steps, samples, batchSize }: FitParams): number | null {
  if (steps) return steps;
  return samples && batchSize ? Math.ceil(samples / batchSize) : null;
}

/** Returns loss and metrics, without the index and size of the batch. */
function numbersIn(logs: Readonly<Record<string, unknown>>): Readonly<Record<string, number>> {
  const entries = Object.entries(logs).filter(
    (entry): entry is [string, number] =>
      typeof entry[1] === "number" && entry[0] !== "batch" && entry[0] !== "size",
  );
  return Object.fromEntries(entries);
}
