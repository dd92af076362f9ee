import {
  type TrainerCallback,
  type AnyEvaluation,
  type EvaluableModel,
  type Progress,
  type Snapshot,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { configError, errorMessage } from "@periodic-eval/contracts/options";
import { differencesOf, keyText, type EarlierRun } from "@periodic-eval/store";
import { isBaselinePath, type Baselines } from "../records/baselines.ts";
import type { Reporter } from "../records/reporter.ts";
import type { Preflight } from "./preflight.ts";
import { provenanceOf } from "./prepare.ts";

const where = "session options";
const path = ["baseline"];

export interface BaselineCheck {
  readonly baselines: Baselines;
  readonly callbacks: readonly TrainerCallback[];
  readonly preflight: Preflight;
  readonly reporter: Reporter;
  readonly phase: string;
  readonly seed: string;
  readonly at: Progress;
}

/**
 * Finds, before step 1, the baseline that is not one of this run's own measurements.
 *
 * @throws PeriodicEvalError `config` for a run whose starts had another setup, or that measured nothing that is measured here;
 * `model` for `adapter_off` with a model that has no adapter.
 */
export async function openBaseline(check: BaselineCheck): Promise<void> {
  const { baselines, callbacks, reporter, phase } = check;
  const { option } = baselines;
  if (baselines.isAdapterOff) return checkAdapterOff(check);
  if (!isBaselinePath(option)) return;
  const run = await readEarlierRunAt(option);
  baselines.useEarlierRun(run);
  for (const { file, message, invalid } of run.problems)
    reporter.warn("comparison", `${file} of ${option}${invalid ? " is left out" : ""}: ${message}`);
  const scheduled = callbacks.filter(({ triggers }) => triggers !== undefined);
  const found: boolean[] = [];
  for (const { callback, evaluation } of askedBy(scheduled)) {
    const { id } = callback;
    const start = run.startOf(phase, id);
    found.push(start !== null);
    if (start === null)
      baselines.warnNotCompared(id, `"${id}" is not compared: ${option} has no start of it`);
    else await checkStart(check, run, start, callback, evaluation);
  }
  if (found.length === 0 || found.includes(true)) return;
  throw configError({
    where,
    path,
    got: `${option}, which has no start of ${scheduled.map(({ id }) => `"${id}"`).join(", ")}`,
    expected: "an earlier run that measured the same",
    fix: 'Name another run, or write "phase_start".',
  });
}

/** Checks a baseline without measuring: reads the earlier run that it names, or checks that the model has an adapter. */
export async function checkBaseline(baseline: string, model: EvaluableModel): Promise<void> {
  if (baseline === "adapter_off" && model.base === undefined) {
    throw new PeriodicEvalError({
      code: "model",
      where: `${where}.baseline`,
      path,
      got: `"adapter_off" with the model "${model.identity.name}", which has no adapter to switch off`,
      expected: "a model with an adapter (LoRA)",
      fix: 'Open the model with its adapter, or write "phase_start".',
    });
  }
  if (isBaselinePath(baseline)) await readEarlierRunAt(baseline);
}

/** Loads the file reader only when it is needed, so that the package's root runs outside Node. */
async function readEarlierRunAt(baseline: string): Promise<EarlierRun> {
  const { readEarlierRun } = await import("@periodic-eval/store");
  return readEarlierRun(baseline);
}

const askedBy = (callbacks: readonly TrainerCallback[]) =>
  callbacks.flatMap((callback) => (callback.asks ?? []).map((evaluation) => ({ callback, evaluation })));

/** Chooses the evaluations that can be measured without the adapter. */
async function checkAdapterOff(check: BaselineCheck): Promise<void> {
  const { baselines, callbacks, preflight, at } = check;
  const model = await preflight.modelAt(at);
  await checkBaseline("adapter_off", model);
  for (const { callback, evaluation } of askedBy(callbacks)) {
    if (callback.on === "base") continue;
    try {
      await preflight.prepare(model, evaluation, "base", callback);
      baselines.measureWithoutAdapter(evaluation);
    } catch (error) {
      const why = `it cannot be measured without the adapter: ${errorMessage(error)}`;
      baselines.warnNotCompared(callback.id, `"${callback.id}" is not compared: ${why}`);
    }
  }
}

async function checkStart(
  { preflight, seed, at }: BaselineCheck,
  run: EarlierRun,
  start: Snapshot,
  callback: TrainerCallback,
  evaluation: AnyEvaluation,
): Promise<void> {
  const on = callback.on ?? "model";
  const prepared = await preflight.prepare(await preflight.modelAt(at), evaluation, on, callback);
  const here = {
    evaluation: evaluation.name,
    evaluation_version: evaluation.version,
    on,
    provenance: provenanceOf(evaluation, prepared, seed),
  };
  const different = differencesOf(start, here);
  if (start.status !== "complete") different.push(`the status "${start.status}"`);
  if (different.length > 0) {
    throw configError({
      where,
      path,
      got: `${run.path}, where ${keyText(start)} has ${different.join(", ")}`,
      expected: `a start of callback "${callback.id}" with the same setup as here`,
      fix: "Use the same options here, or name another run.",
    });
  }
  await run.rows(start);
}
