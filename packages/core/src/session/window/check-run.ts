import {
  type TrainerCallback,
  type AnyEvaluation,
  type EvaluableModel,
  type Progress,
  type Snapshot,
  PeriodicEvalError,
  type PhaseClosing,
  type SessionOptions,
} from "@periodic-eval/contracts";
import { configError, errorMessage } from "@periodic-eval/contracts/options";
import { differencesOf, keyText, type EarlierRun, otherItems, readEarlierRun } from "@periodic-eval/store";
import { plannedSteps } from "../../schedule/crossings.ts";
import { isBaselinePath } from "../records/baselines.ts";
import type { SessionRecords } from "../records/records.ts";
import type { Preflight } from "./preflight.ts";
import { provenanceOf, evaluationPlace, lacksOptionalQuestions, prepareEvaluation } from "./prepare.ts";

const where = "session options";
const path = ["baseline"];

export interface RunCheck {
  readonly records: SessionRecords;
  /** The callbacks that can be measured. */
  readonly callbacks: readonly TrainerCallback[];
  readonly preflight: Preflight;
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
export async function openBaseline(check: RunCheck): Promise<void> {
  const { callbacks, phase } = check;
  const { baselines, reporter } = check.records;
  const { option } = baselines;
  if (baselines.isAdapterOff) return checkAdapterOff(check);
  if (!isBaselinePath(option)) return;
  const run = await readEarlierRun(option);
  baselines.useEarlierRun(run);
  for (const { file, message, invalid } of run.problems)
    reporter.warn("comparison", `${file} of ${option}${invalid ? " is left out" : ""}: ${message}`);
  const scheduled = callbacks.filter(({ triggers }) => triggers !== undefined);
  const hasStart: boolean[] = [];
  for (const { callback, evaluation } of askedBy(scheduled)) {
    const { id } = callback;
    const start = run.startOf(phase, id);
    hasStart.push(start !== null);
    if (start === null)
      baselines.warnNotCompared(id, `"${id}" is not compared: ${option} has no start of it`);
    else await checkStart(check, run, start, callback, evaluation);
  }
  if (hasStart.length === 0 || hasStart.includes(true)) return;
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
  if (isBaselinePath(baseline)) await readEarlierRun(baseline);
}

const askedBy = (callbacks: readonly TrainerCallback[]) =>
  callbacks.flatMap((callback) => (callback.asks ?? []).map((evaluation) => ({ callback, evaluation })));

/** Chooses the evaluations that can be measured without the adapter. */
async function checkAdapterOff({ records, callbacks, preflight, at }: RunCheck): Promise<void> {
  const { baselines } = records;
  const model = await preflight.modelAt(at);
  await checkBaseline("adapter_off", model);
  for (const { callback, evaluation } of askedBy(callbacks)) {
    if (callback.on === "base") continue;
    try {
      await preflight.prepare(model, evaluation, "base", callback, at);
      baselines.measureWithoutAdapter(evaluation);
    } catch (error) {
      const why = `it cannot be measured without the adapter: ${errorMessage(error)}`;
      baselines.warnNotCompared(callback.id, `"${callback.id}" is not compared: ${why}`);
    }
  }
}

/** Returns what a measurement of this callback would be, as far as it is known before it is taken. */
async function setupOf(
  { preflight, seed, at }: RunCheck,
  callback: TrainerCallback,
  evaluation: AnyEvaluation,
): Promise<Pick<Snapshot, "evaluation" | "evaluation_version" | "on" | "provenance">> {
  const { on = "model" } = callback;
  const prepared = await preflight.prepare(await preflight.modelAt(at), evaluation, on, callback, at);
  const { name, version } = evaluation;
  return {
    evaluation: name,
    evaluation_version: version,
    on,
    provenance: provenanceOf(evaluation, prepared, seed),
  };
}

async function checkStart(
  check: RunCheck,
  run: EarlierRun,
  start: Snapshot,
  callback: TrainerCallback,
  evaluation: AnyEvaluation,
): Promise<void> {
  const different = differencesOf(start, await setupOf(check, callback, evaluation));
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

/**
 * Checks that a finished run is not asked for measurements that it does not have: nothing would measure them. While another phase
 * of the run has to be trained, its measurements may change.
 *
 * @throws PeriodicEvalError `config` that names the callback and how it differs, with the remedy.
 */
export async function checkFinished(check: RunCheck, closings: readonly PhaseClosing[]): Promise<void> {
  if (closings.some(({ finished }) => !finished)) return;
  for (const callback of check.callbacks) {
    const different = await differencesFromRun(check, callback);
    if (different.length === 0) continue;
    throw configError({
      where: `callback "${callback.id}"`,
      got: `a finished phase "${check.phase}", which was measured with ${different.join(", ")}`,
      expected: "the callbacks and questions with which the run was trained",
      fix: "To train with these measurements, name another run folder. To measure the final weights, use `eval` on the last checkpoint.",
    });
  }
}

async function differencesFromRun(check: RunCheck, callback: TrainerCallback): Promise<readonly string[]> {
  const { id, asks = [], triggers = [] } = callback;
  const { maxSteps } = check.at;
  const ofCallback = check.records.known.settledOf(check.phase, id);
  if (ofCallback.length === 0)
    return plannedSteps(triggers, maxSteps)?.includes(maxSteps!) === true
      ? ["no measurement of this callback"]
      : [];
  for (const evaluation of asks) {
    const last = ofCallback.findLast(
      (snapshot) => snapshot.evaluation === evaluation.name && snapshot.provenance.items_hash !== null,
    );
    if (last === undefined) continue;
    const here = await setupOf(check, callback, evaluation);
    const { model, tokenizer, items, items_hash } = last.provenance;
    // The weights are measured: another backend would measure the same model.
    const different = differencesOf(last, {
      ...here,
      provenance: { ...here.provenance, model, tokenizer },
    });
    if (different.length > 0) return different;
    // Another subset may be paired, but was not measured.
    if (items_hash !== here.provenance.items_hash) return [otherItems(items, here.provenance.items)];
  }
  return [];
}

/** The session options that decide what will be measured. */
export interface RequestCheck extends Pick<SessionOptions, "callbacks" | "baseline"> {
  /** May lack its weights: the check asks it for no numbers. */
  readonly model: EvaluableModel;
}

/**
 * Finds the errors that a session would throw at its `begin`, as far as they show without weights and graders: missing
 * abilities, missing or wrong data, an earlier run that does not exist.
 *
 * @returns The errors: at most one for each evaluation, and one for the baseline.
 */
export async function checkRequests({
  callbacks,
  baseline = "phase_start",
  model,
}: RequestCheck): Promise<readonly unknown[]> {
  const errors: unknown[] = [];
  const check = async (call: () => Promise<unknown>) => {
    try {
      await call();
    } catch (error) {
      errors.push(error);
    }
  };
  for (const callback of callbacks) {
    for (const evaluation of callback.asks ?? []) {
      const where = evaluationPlace(callback, evaluation);
      await check(async () => {
        try {
          await prepareEvaluation({ prepared: new Map() }, model, evaluation, callback.on ?? "model", where);
        } catch (error) {
          // The session disables it, with a warning.
          if (!lacksOptionalQuestions(evaluation, error)) throw error;
        }
      });
    }
  }
  await check(() => checkBaseline(baseline, model));
  return errors;
}
