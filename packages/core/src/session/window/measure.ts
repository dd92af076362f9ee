import { checkKeys } from "../../internal/check-keys.ts";
import { checkWord } from "../../internal/check-word.ts";
import { PeriodicEvalError } from "../../errors.ts";
import type { AnyEvaluation, Row } from "../../contracts/evaluation.ts";
import { mathRandomGuard } from "../../guard/randomness.ts";
import type { Guard } from "../../contracts/guard.ts";
import { isCount } from "../../internal/is-count.ts";
import type { EvaluableModel } from "../../contracts/model.ts";
import { seedOf } from "../../random/streams.ts";
import { checkName, checkPhaseName } from "../../internal/names.ts";
import type { Snapshot, SnapshotKey } from "../../contracts/snapshot.ts";
import { gradeRows, rowsOwed } from "../records/checked-rows.ts";
import { resultsOf } from "../records/compare.ts";
import { measureOnce } from "./measure-once.ts";
import { recordOf } from "../records/new-record.ts";
import { checkSeed } from "../loop/options.ts";
import { prepareEvaluation } from "./preflight.ts";

export interface MeasureOptions {
  /** Measure the first so many items only. */
  readonly limit?: number;
  readonly signal?: AbortSignal;
  readonly guards?: readonly Guard[];
  /** Default `"42"`. */
  readonly seed?: string;
  /** `"base"` measures the model without its adapter; default `"model"`. */
  readonly on?: "model" | "base";
  /**
   * The firing that it stands for: what is random is drawn as a session of this seed draws it there. By default phase
   * `measure`, step 0, and the evaluation's name as id.
   */
  readonly as?: SnapshotKey;
  /** Told how many items are done, of how many. */
  readonly progress?: (done: number, total: number) => void;
}

const names = {
  limit: true,
  signal: true,
  guards: true,
  seed: true,
  on: true,
  as: true,
  progress: true,
} as const satisfies Record<keyof MeasureOptions, true>;

/**
 * Measures a model once, without a session: items, rows, grades, metrics. A broken receipt is in it and throws nothing.
 * Nothing is written.
 *
 * @throws PeriodicEvalError `model` where the model lacks an ability, `data` for bad items or rows; what the evaluation's
 * `failure` says of its rows, which are lost with it; and whatever the evaluation throws.
 */
export async function measure(
  evaluation: AnyEvaluation,
  model: EvaluableModel,
  options: MeasureOptions = {},
): Promise<{ readonly snapshot: Snapshot; readonly rows: readonly Row[] }> {
  checkKeys("measure", options, Object.keys(names));
  const { limit, signal = new AbortController().signal, guards = [], seed = "42", on = "model" } = options;
  if (limit !== undefined && !isCount(limit, 1)) {
    throw new PeriodicEvalError({
      code: "config",
      where: "measure limit",
      got: String(limit),
      expected: "a whole number of 1 or more",
      fix: "Leave it out to measure all items.",
    });
  }
  checkSeed("measure seed", seed);
  checkWord("measure on", on, ["model", "base"]);
  if (options.as !== undefined) checkFiring(options.as);
  const clock = () => performance.now() / 1000;
  const prepared = await prepareEvaluation(
    { prepared: new Map() },
    model,
    evaluation,
    on,
    `evaluation "${evaluation.name}"`,
    limit,
  );
  const { phase, id, step } = options.as ?? { phase: "measure", id: idOf(evaluation), step: 0 };
  const at = { step, maxSteps: null, epoch: 0, elapsedSeconds: 0, ended: false };
  const createdAt = new Date().toISOString();
  const firing = seedOf(seed, phase, id, step);
  const measured = await measureOnce({
    evaluation,
    prepared,
    guards: [mathRandomGuard(), ...guards],
    justLeft: [],
    seed: firing,
    stepSeed: seedOf(seed, phase, step),
    provenanceSeed: seed,
    signal,
    clock,
    progress: (done) => options.progress?.(done, prepared.items.length),
  });
  if (measured.kind === "failed") throw measured.error;
  const raw = measured.kind === "measured" ? measured.rows : [];
  const grading = clock();
  const rows = evaluation.grade === undefined ? raw : await gradeRows(evaluation, raw, { signal });
  const failure = evaluation.failure?.(rows) ?? null;
  if (failure !== null) throw failure;
  const gradeSeconds = evaluation.grade === undefined ? null : clock() - grading;
  const { values, primary, plain } = resultsOf(evaluation, rows, firing);
  const owed = rowsOwed(evaluation, prepared);
  const isPartial = raw.length < owed;
  const record = recordOf(
    { id, phase, at, runStepOffset: 0, crossed: [], on, evaluation, seed, createdAt },
    {
      status: isPartial ? "partial" : "complete",
      reason: isPartial ? `${raw.length} of ${owed} rows` : null,
      metrics: values,
      primary_metric: primary,
      provenance: measured.provenance!,
      weights: measured.weights,
      receipt: [...measured.receipt],
      timing: {
        total_seconds: measured.guardsSeconds + measured.measureSeconds,
        guards_seconds: measured.guardsSeconds,
        measure_seconds: measured.measureSeconds,
        grade_seconds: gradeSeconds,
        items: raw.length,
        tokens: measured.tokens,
        overhead_percent: null,
        governor: "off",
      },
    },
  );
  return { snapshot: { ...plain, ...record }, rows };
}

const idOf = ({ name }: AnyEvaluation): string =>
  name.replaceAll(/[^\w.-]/g, "-").replace(/^[^A-Za-z0-9]+/, "") || "evaluation";

function checkFiring({ phase, id, step }: SnapshotKey): void {
  checkPhaseName("measure as.phase", phase);
  checkName("measure as.id", id);
  if (isCount(step)) return;
  throw new PeriodicEvalError({
    code: "config",
    where: "measure as.step",
    got: String(step),
    expected: "a whole number of 0 or more",
    fix: "Give the step of the snapshot that it repeats.",
  });
}
