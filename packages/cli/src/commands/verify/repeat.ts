import { onInterrupt } from "../../terminal/interrupt.ts";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { configError, dataError, valueAt } from "@periodic-eval/contracts/options";
import {
  buildPeriodicCallbacks,
  measure,
  type AnyEvaluation,
  type CallbackContext,
  type Snapshot,
  type TrainerCallback,
} from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import { measuredBy } from "@periodic-eval/core/session";
import { formatDelta, formatValue } from "@periodic-eval/dashboard";
import { loadCausalLM, loadLora, type CheckpointLM } from "@periodic-eval/models";
import { fileStore, parseVerified, readTextFile } from "@periodic-eval/store";
import { inMemory, tfjsGuards } from "@periodic-eval/tfjs";
import { readEvalBlock, resolveModel, throwAll, withOptionPlace } from "../../config/config-file.ts";
import { type LoadTasks, loadEvaluations, openGrader } from "../../config/open-grader.ts";
import { openModel, startBackend } from "../../config/open-model.ts";
import { jsonText, plainTable, type Terminal, type Colours } from "../../terminal/terminal.ts";

export interface RepeatOptions {
  /** The model that was trained. Saved adapters are applied to it, and its tokenizer is used in any case. Default: the file's. */
  readonly model?: string;
  /** A file with the run's `periodic_eval` block. Default: the `train.yaml` that `train` writes into the run. */
  readonly config?: string;
  readonly backend?: string;
  readonly json: boolean;
}

/**
 * Repeats the measurement of a snapshot, and prints the values of both.
 *
 * @throws PeriodicEvalError `data` if a value differs, and the errors of `repeat`.
 */
export async function repeatMeasurement(
  snapshot: string,
  options: RepeatOptions,
  { terminal, loadTasks }: { readonly terminal: Terminal; readonly loadTasks: LoadTasks },
): Promise<void> {
  const { signal, stopListening } = onInterrupt(terminal);
  try {
    const result = await repeat(resolve(snapshot), { ...options, signal, loadTasks }, terminal);
    terminal.out(options.json ? repeatedJson(result) : repeatedTable(result, terminal.colours));
    const changed = result.metrics.filter(({ isSame }) => !isSame).map(({ name }) => name);
    if (changed.length === 0) return;
    throw dataError(
      snapshot,
      `other values of ${changed.join(", ")}`,
      `the same: ${toleranceText}`,
      "Check whether weights, data or judge have changed.",
    );
  } finally {
    stopListening();
  }
}

interface RepeatedMetric {
  readonly name: string;
  readonly unit: string;
  readonly before: number | null;
  readonly now: number | null;
  /** Largest difference that counts as the same, in the metric's unit; see `toleranceOf`. */
  readonly tolerance: number;
  /** Whether both values have the same `n` and agree within the tolerance, or both are null. */
  readonly isSame: boolean;
}

interface RepeatedMeasurement {
  readonly snapshot: Snapshot;
  /** Folder of the saved weights. */
  readonly weights: string;
  readonly metrics: readonly RepeatedMetric[];
  /** Other differences between the two measurements, such as "the tokenizer". */
  readonly otherwise: readonly string[];
}

/**
 * Repeats the measurement of a snapshot with its saved weights, items, seed and random streams.
 *
 * @throws PeriodicEvalError `data` for a snapshot without saved weights or rows; `config` if the file has no such evaluation
 *   under the snapshot's id; and the errors of loading and measuring.
 */
async function repeat(
  path: string,
  {
    backend,
    signal,
    loadTasks,
    ...options
  }: RepeatOptions & { readonly signal: AbortSignal; readonly loadTasks: LoadTasks },
  terminal: Terminal,
): Promise<RepeatedMeasurement> {
  const snapshot = parseVerified(await readTextFile(path, "verify"), path);
  const weights = savedFolder(snapshot, path);
  const config = options.config ?? trainedConfig(path);
  const { file, at, block } = await readEvalBlock(config);
  const trained = valueAt(file.value, ["model"]);
  const source =
    options.model ?? (typeof trained === "string" ? resolveModel(file, ["model"], trained) : null);
  if (source === null)
    throw configError({
      where: "--model",
      got: `nothing, and ${config} names no model`,
      expected: "the model that was trained",
      fix: "Pass --model FOLDER.",
    });
  // Before the configuration opens a judge, which runs on this engine.
  await startBackend(backend, terminal);
  const { callback, evaluation } = await withOptionPlace(file, at, () =>
    evaluationOf(snapshot, block, loadTasks),
  );
  if (snapshot.step > 0) await resumeCallback(callback, snapshot, { runDir: runDirOf(path), signal });
  const { items, samples } = measuredPart(snapshot, evaluation);
  if (items === 0)
    throw dataError(
      path,
      `no measured items (${snapshot.status})`,
      "a snapshot with rows",
      "Choose another snapshot.",
    );
  const { model: base, tokenizer } = await openModel(source, terminal);
  let model: CheckpointLM | null = null;
  try {
    const isAdapter = existsSync(join(weights, "adapter_config.json"));
    model = isAdapter ? await loadLora(base, weights) : await loadCausalLM(weights);
    const { phase, id, step, on, provenance } = snapshot;
    const { snapshot: again } = await measure(evaluation, inMemory(model, tokenizer), {
      as: { phase, id, step },
      seed: provenance.seed,
      on,
      guards: tfjsGuards(model),
      ...(items < (provenance.items ?? items) && { limit: items }),
      samples,
      signal,
    });
    return {
      snapshot,
      weights,
      metrics: metricsOf(snapshot, again),
      otherwise: differencesOf(snapshot, again),
    };
  } finally {
    model?.dispose();
    base.dispose();
  }
}

/** @throws PeriodicEvalError `config` for a run that `train` did not write. */
function trainedConfig(snapshot: string): string {
  const path = join(runDirOf(snapshot), "train.yaml");
  if (existsSync(path)) return path;
  throw configError({
    where: "--config",
    got: `nothing, and no ${path}`,
    expected: "the file with the run's periodic_eval block",
    fix: "Pass --config FILE.",
  });
}

function metricsOf(old: Snapshot, fresh: Snapshot): readonly RepeatedMetric[] {
  const sizeOf = (unit: string) =>
    Object.values(old.metrics).reduce(
      (most, metric) => (metric.unit === unit ? Math.max(most, Math.abs(metric.value ?? 0)) : most),
      0,
    );
  return [...new Set([...Object.keys(old.metrics), ...Object.keys(fresh.metrics)])].map((name) => {
    const [stored, repeated] = [old.metrics[name], fresh.metrics[name]];
    const [before, now] = [stored?.value ?? null, repeated?.value ?? null];
    const { unit } = (stored ?? repeated)!;
    const tolerance = toleranceOf(unit, sizeOf(unit));
    const isClose = before === null || now === null ? before === now : Math.abs(now - before) <= tolerance;
    return { name, unit, before, now, tolerance, isSame: isClose && stored?.n === repeated?.n };
  });
}

/** Lists differences that may explain why a metric changed. */
function differencesOf(stored: Snapshot, repeated: Snapshot): readonly string[] {
  const [old, fresh] = [stored.provenance, repeated.provenance];
  const differences = {
    "the weights' fingerprint": [stored.weights, repeated.weights],
    "the evaluation's options or data": [canonicalJson(old.evaluation), canonicalJson(fresh.evaluation)],
    "the evaluation's version": [stored.evaluation_version, repeated.evaluation_version],
    "the tokenizer": [old.tokenizer, fresh.tokenizer],
    // A subset of the items has another hash.
    "the items": old.items === fresh.items ? [old.items_hash, fresh.items_hash] : [],
    "the number of rows": [stored.timing.items, repeated.timing.items],
  };
  return Object.entries(differences)
    .filter(([, [before, after]]) => before !== after)
    .map(([what]) => what);
}

/** Returns how many items a snapshot's rows cover, and how many samples of each. */
function measuredPart(
  { timing, provenance }: Snapshot,
  { samplesPerItem = 1, canReduceSamples = false }: AnyEvaluation,
): { readonly items: number; readonly samples: number } {
  const all = provenance.items ?? 0;
  const samples = canReduceSamples && all > 0 ? Math.max(1, Math.floor(timing.items / all)) : samplesPerItem;
  return { samples, items: Math.floor(timing.items / samples) };
}

/** Returns the folder of the saved weights. Its path is relative to the run's folder, which may have moved, or to the working directory of the run. */
function savedFolder({ saved }: Snapshot, path: string): string {
  const expected = "a snapshot of a run with saveAdapterAtFiring";
  const fix = "Train with `saveAdapterAtFiring: true`: only saved weights can be measured again.";
  if (saved === undefined) throw dataError(path, "no saved weights", expected, fix);
  if (saved.path === null)
    throw dataError(path, `weights that could not be saved: ${saved.error}`, expected, fix);
  const candidates = [resolve(runDirOf(path), saved.path), resolve(saved.path)];
  for (const folder of candidates) if (existsSync(folder)) return folder;
  throw dataError(
    path,
    `saved weights "${saved.path}" that do not exist`,
    `a folder ${candidates.join(" or ")}`,
    "Restore the folder.",
  );
}

/** Returns the folder that contains the snapshot's `periodic_eval`, or the snapshot's own folder if there is none. */
function runDirOf(path: string): string {
  const parts = dirname(path).split(/[\\/]/);
  const at = parts.lastIndexOf("periodic_eval");
  return at < 0 ? dirname(path) : parts.slice(0, at).join("/");
}

async function evaluationOf(
  { id, phase, evaluation: name }: Snapshot,
  block: unknown,
  loadTasks: LoadTasks,
): Promise<{ readonly callback: TrainerCallback; readonly evaluation: AnyEvaluation }> {
  const evaluations = await loadEvaluations(loadTasks);
  const callbacks = await buildPeriodicCallbacks(block, { phase, openJudge: openGrader, evaluations });
  const measuring = callbacks
    .flatMap((callback) => measuredBy(callback).map((measured) => ({ callback, ...measured })))
    .find((measured) => measured.evaluation.name === name && measured.id === id);
  if (measuring !== undefined) return measuring;
  throw configError({
    where: "periodic_eval",
    got: `a configuration that measures ${callbacks.map((callback) => callback.id).join(", ") || "nothing"} in ${phase}`,
    expected: `the evaluation ${name} under the id ${id}`,
    fix: "Pass the configuration of the run.",
  });
}

/**
 * Calls `onTrainBegin` as a resumed run does, so that traits load the directions of the start.
 *
 * @throws The errors of reading rows.
 */
async function resumeCallback(
  callback: TrainerCallback,
  { phase, step, max_steps: maxSteps }: Snapshot,
  { runDir, signal }: { readonly runDir: string; readonly signal: AbortSignal },
): Promise<void> {
  const progress = { step, maxSteps, epoch: 0, elapsedSeconds: 0, ended: false };
  const ignore = () => undefined;
  const errors: unknown[] = [];
  const rows: CallbackContext["rows"] = async (key) => {
    try {
      return await fileStore(runDir).rows(key);
    } catch (error) {
      errors.push(error);
      throw error;
    }
  };
  const requests = {
    measure: ignore,
    requestStop: ignore,
    requestSave: ignore,
    report: ignore,
    warn: ignore,
  };
  const context = { phase, progress, previous: progress, signal, metrics: {}, rows, ...requests };
  await callback.onTrainBegin?.(context);
  throwAll(errors);
}

/**
 * Returns the largest difference at which two values of a metric count as the same. Shares count answers: rounding changes
 * none, or moves a share by 1/n, so shares must agree but for the last digits of their sum. Sums and means of float32
 * log-probabilities depend on engine and machine: between wasm, cpu and tfjs-node on the embedded model, means (KL to the base
 * included) differ by at most 1.6e-6 and sums by 2e-7 of the size of their parts (2e-5 nats of a margin between sides of −130).
 * The tolerance is about ten times that.
 *
 * @param size Largest absolute value of that unit in the snapshot, because a small margin may have large sides.
 */
export const toleranceOf = (unit: string, size: number): number =>
  unit === "share" ? 1e-9 : 1e-5 + 2e-6 * size;

/** `toleranceOf` for messages. */
export const toleranceText =
  "shares exactly, all other values within 1e-5 and 2e-6 of the largest value of the unit";

const columns = [{ words: "metric" }, "before", "now", "difference", { words: "" }];

function repeatedTable({ weights, metrics, otherwise }: RepeatedMeasurement, colours: Colours): string {
  const rows = metrics.map(({ name, unit, before, now, isSame }) => [
    name,
    formatValue(before, unit),
    formatValue(now, unit),
    formatDelta(before === null || now === null ? null : now - before, unit),
    isSame ? "same" : "differs",
  ]);
  return [
    plainTable(columns, rows, colours),
    "",
    `measured again from ${weights}; same: ${toleranceText}`,
    ...(otherwise.length === 0 ? [] : [`also changed: ${otherwise.join(", ")}`]),
  ].join("\n");
}

function repeatedJson({ snapshot, weights, metrics, otherwise }: RepeatedMeasurement): string {
  const { phase, id, step } = snapshot;
  return jsonText({
    phase,
    id,
    step,
    weights,
    same: metrics.every(({ isSame }) => isSame),
    otherwise,
    metrics: Object.fromEntries(
      metrics.map(({ name, before, now, tolerance, isSame }) => [
        name,
        { before, now, tolerance, same: isSame },
      ]),
    ),
  });
}
