import * as z from "zod";
import type {
  AnyEvaluation,
  Row,
  Guard,
  CallOptions,
  EvaluableModel,
  MeasurementPace,
  Snapshot,
  SnapshotKey,
} from "@periodic-eval/contracts";
import { mathRandomGuard } from "../../guard/randomness.ts";
import {
  parseOptions,
  functionSchema,
  objectWith,
  nameSchema,
  onSchema,
  phaseSchema,
  positiveInteger,
  seedSchema,
  signalSchema,
  stepsSchema,
} from "@periodic-eval/contracts/options";
import { workingSeconds, addWarnings } from "@periodic-eval/store";
import { seedOf } from "../../random/streams.ts";
import { computeResults, failureOf, gradeRows } from "../records/results.ts";
import { newSnapshot } from "../records/new-snapshot.ts";
import { measureOnce, timingOf } from "./measure-once.ts";
import { expectedRows } from "./measure-rows.ts";
import { prepareEvaluation, servedOf } from "./prepare.ts";
import { probeModel } from "./probe-model.ts";

export interface MeasureOptions {
  /** Measures only the first items, at most this many. Default: all. */
  readonly limit?: number;
  /** For an evaluation with `canReduceSamples`: takes only the first samples of each item, at most this many. Default: all. */
  readonly samples?: number;
  readonly signal?: AbortSignal;
  readonly guards?: readonly Guard[];
  /** Default `"42"`. */
  readonly seed?: string;
  /** `"base"` measures the model without its adapter; default `"model"`. */
  readonly on?: "model" | "base";
  /**
   * The measurement of a run that this one repeats: random numbers are drawn as in a session with this seed. Default: phase
   * `measure`, step 0, and the evaluation's name as id.
   */
  readonly as?: SnapshotKey;
  /** Called with the number of rows measured and their total, and each second while a call of the model runs. */
  readonly progress?: (done: number, total: number, pace: MeasurementPace) => void;
}

const optionsSchema = z.strictObject({
  limit: positiveInteger.optional().meta({ fix: "Leave it out to measure all items." }),
  samples: positiveInteger.optional(),
  signal: signalSchema.optional(),
  guards: z.array(objectWith<Guard>(["enter"], "a guard")).default([]),
  seed: seedSchema.default("42"),
  on: onSchema.default("model"),
  as: z.object({ phase: phaseSchema, id: nameSchema, step: stepsSchema }).optional(),
  progress: functionSchema<NonNullable<MeasureOptions["progress"]>>("a function").optional(),
} satisfies Record<keyof MeasureOptions, z.ZodType>);

/**
 * Measures a model once, without a session: items, rows, grades, metrics. A broken receipt is part of the snapshot and throws
 * nothing. Nothing is written.
 *
 * @throws PeriodicEvalError `config` for a wrong option, `model` if the model lacks an ability, `data` for wrong items or rows;
 * the error that the evaluation's `failure` returns; and whatever the evaluation throws.
 */
export async function measure(
  evaluation: AnyEvaluation,
  model: EvaluableModel,
  options: MeasureOptions = {},
): Promise<{ readonly snapshot: Snapshot; readonly rows: readonly Row[] }> {
  const {
    limit,
    samples = Infinity,
    signal,
    guards,
    seed,
    on,
    as,
    progress,
  } = parseOptions("measure options", optionsSchema, options);
  const calls = { signal: signal ?? new AbortController().signal };
  const where = `evaluation "${evaluation.name}"`;
  const prepared = await prepareEvaluation({ prepared: new Map() }, model, evaluation, on, where, limit);
  const expected = expectedRows(evaluation, prepared);
  const wanted = evaluation.canReduceSamples ? Math.min(expected, samples * prepared.items.length) : expected;
  const { phase, id, step } = as ?? { phase: "measure", id: idOf(evaluation), step: 0 };
  const createdAt = new Date().toISOString();
  const measurementSeed = seedOf(seed, phase, id, step);
  const faults = await probeModel(prepared.target, [], calls);
  const measured = await measureOnce({
    evaluation,
    prepared,
    guards: [mathRandomGuard(), ...guards],
    justLeft: [],
    seed: measurementSeed,
    stepSeed: seedOf(seed, phase, step),
    provenanceSeed: seed,
    ...calls,
    clock: workingSeconds,
    portions: (done) => (done === 0 ? wanted : 0),
    progress: (done, pace) => progress?.(done, wanted, pace),
  });
  if (measured.kind === "failed") throw measured.error;
  const raw = measured.kind === "measured" ? measured.rows : [];
  const { rows, gradeSeconds } = await gradeMeasured(evaluation, raw, calls);
  const { values, primary, warnings, plain } = computeResults(evaluation, rows, measurementSeed);
  const isPartial = raw.length < expected;
  const at = { step, maxSteps: null, epoch: 0, elapsedSeconds: 0, ended: false };
  const record = newSnapshot(
    { id, phase, at, runStep: step, crossed: [], on, evaluation, seed, createdAt },
    {
      status: isPartial ? "partial" : "complete",
      ...servedOf(prepared),
      reason: isPartial ? `${raw.length} of ${expected} rows` : null,
      metrics: values,
      primary_metric: primary,
      provenance: measured.provenance!,
      weights: measured.weights,
      receipt: [...measured.receipt],
      timing: { ...timingOf(measured, raw.length), grade_seconds: gradeSeconds },
    },
  );
  return { snapshot: addWarnings({ ...plain, ...record }, [...faults, ...warnings]), rows };
}

/** Grades rows, if the evaluation grades. Throws the error of its `failure`. */
async function gradeMeasured(evaluation: AnyEvaluation, raw: readonly Row[], calls: CallOptions) {
  const began = workingSeconds();
  const rows = evaluation.grade === undefined ? raw : await gradeRows(evaluation, raw, calls);
  const failure = failureOf(evaluation, rows);
  if (failure !== null) throw failure;
  return { rows, gradeSeconds: evaluation.grade === undefined ? null : workingSeconds() - began };
}

/** Turns an evaluation's name into a valid id. */
const idOf = ({ name }: AnyEvaluation): string =>
  name.replaceAll(/[^\w.-]/g, "-").replace(/^[^A-Za-z0-9]+/, "") || "evaluation";
