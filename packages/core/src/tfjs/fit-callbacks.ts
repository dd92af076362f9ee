import { checkKeys } from "../internal/check-keys.ts";
import type { Awaitable } from "../contracts/json.ts";
import type { Control, Session, SessionState } from "../contracts/session.ts";

/** `tf.CustomCallbackArgs`, without the layers library at run time. `logs` hold numbers: layers downloads losses first. */
export interface FitCallbacks {
  onTrainBegin(): Promise<void>;
  onEpochBegin(epoch: number): Promise<void>;
  onBatchBegin(): Promise<void>;
  onBatchEnd(batch: number, logs?: Readonly<Record<string, unknown>>): Promise<void>;
  onTrainEnd(): Promise<void>;
}

export interface FitCallbacksOptions {
  /** Writes a checkpoint where a callback asks for one; without it such requests go unheard. */
  readonly save?: (state: SessionState) => Awaitable<void>;
}

/** What layers tells a plain-object callback through `this`. */
interface FitParams {
  readonly epochs?: number;
  readonly initialEpoch?: number | null;
  /** Set by `fitDataset` with a dataset of known size. */
  readonly steps?: number | null;
  /** Set by `fit`. */
  readonly samples?: number | null;
  readonly batchSize?: number | null;
}

/**
 * Drives a session from `model.fit` or `model.fitDataset`: `begin` with the steps that the call will take, `stepEnd`
 * after every batch with its loss and metrics, `end` after the last. A wish to stop becomes `model.stopTraining`.
 *
 * A plain object: give it alone, or in an array of plain objects. Layers does not take plain objects and `tf.Callback`s
 * (`tf.callbacks.earlyStopping`) in one array: one order throws, the other loses `this`.
 *
 * - Where `fitDataset` does not know its size, `maxSteps` is null until the first epoch ended.
 * - Layers forgets a stop asked for before the first batch; that batch is still trained, then training stops. A baseline
 *   that an abort cut off is then a `skipped` record.
 * - A callback that throws skips `onTrainEnd`; `withSession` then calls `fail`.
 *
 * @throws PeriodicEvalError `config` for an unknown option.
 */
export function fitCallbacks(
  session: Session,
  model: { stopTraining: boolean },
  options: FitCallbacksOptions = {},
): FitCallbacks {
  checkKeys("fitCallbacks", options, ["save"]);
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
  const obey = async ({ stop, save }: Control): Promise<void> => {
    if (save !== null && session.brokenReceipt === null && options.save) {
      const state = await session.save();
      // The hooks and windows of the save itself may have disturbed the weights.
      if (session.brokenReceipt === null) await options.save(state);
    }
    if (stop !== null) wantsStop = true;
    if (wantsStop) model.stopTraining = true;
  };

  return {
    // Layers calls these as methods of its own callback object, which holds the parameters.
    async onTrainBegin(this: { readonly params?: FitParams } | void) {
      params = (typeof this === "object" && this.params) || {};
      stepsPerEpoch = knownSteps(params);
      ({ step: startStep, epoch: startEpoch } = session.progress);
      await obey(await session.begin({ maxSteps: maxSteps() }));
    },
    async onEpochBegin(index) {
      // `fitDataset` does not tell its initial epoch in the parameters.
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
      await obey(control);
    },
    async onTrainEnd() {
      await session.end();
    },
  };
}

function knownSteps({ steps, samples, batchSize }: FitParams): number | null {
  if (steps) return steps;
  return samples && batchSize ? Math.ceil(samples / batchSize) : null;
}

/** Loss and metrics; the batch's index and size are no measurements. */
function numbersIn(logs: Readonly<Record<string, unknown>>): Readonly<Record<string, number>> {
  const entries = Object.entries(logs).filter(
    (entry): entry is [string, number] =>
      typeof entry[1] === "number" && entry[0] !== "batch" && entry[0] !== "size",
  );
  return Object.fromEntries(entries);
}
