import { access } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import {
  buildPeriodicCallbacks,
  capabilityEvaluation,
  measure,
  PeriodicEvalError,
  type AnyEvaluation,
  type CapabilityOptions,
  type Snapshot,
} from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import { parseSnapshotText, readTextFile } from "@periodic-eval/core/snapshots";
import { inMemory, tfjsGuards } from "@periodic-eval/core/tfjs";
import { loadCausalLM, loadLora, useBackend, type CheckpointLM } from "@periodic-eval/models";
import { withBlockPlace } from "../../config/config-place.ts";
import { readEvalBlock } from "../../config/eval-block.ts";
import { openGrader } from "../../config/open-grader.ts";
import { openModel } from "../../config/open-model.ts";
import type { Terminal } from "../../terminal/terminal.ts";

export interface ReplayRequest {
  /** Path of a snapshot that names its saved weights. */
  readonly snapshot: string;
  /** The model that was trained: an adapter is put on it, and its tokenizer is used in any case. */
  readonly model: string;
  /** How the evaluation is made again: the `periodic_eval` block of a file, or for capability the questions. */
  readonly from: { readonly config: string } | { readonly questions: string };
  readonly backend?: string;
  readonly signal?: AbortSignal;
}

export interface ReplayedMetric {
  readonly name: string;
  readonly unit: string;
  readonly before: number | null;
  readonly now: number | null;
  /** Largest difference that counts as none, in the metric's unit: see `toleranceOf`. */
  readonly tolerance: number;
  /** Within the tolerance, over as many rows, or both null. */
  readonly isSame: boolean;
}

export interface ReplayResult {
  readonly snapshot: Snapshot;
  /** The folder that was measured. */
  readonly weights: string;
  readonly metrics: readonly ReplayedMetric[];
  /** What else is not as it was, in words. */
  readonly otherwise: readonly string[];
}

/**
 * Largest difference of a metric that counts as none. A share counts answers: rounding moves none of it, or all of 1/n, so it
 * must be the same but for the last digits of its sum. What is made of float32 log-probabilities moves by what engine and
 * machine round: on the embedded model between wasm, cpu and tfjs-node by at most 1.6e-6 of a mean (KL to the base too) and
 * by 2e-7 of the size of a sum's parts (2e-5 nats of a margin whose sides are −130). Ten times that is granted, the size being
 * the largest value of that unit in the snapshot: a margin is small where its sides are large.
 */
export const toleranceOf = (unit: string, size: number): number =>
  unit === "share" ? 1e-9 : 1e-5 + 2e-6 * size;

/** It in words. */
export const toleranceWords =
  "shares exactly, all else within 1e-5 and 2e-6 of the largest value of its unit";

/**
 * Measures again what a snapshot measured: its saved weights, items, seed and streams of random numbers, another time.
 *
 * @throws PeriodicEvalError `data` for a snapshot without saved weights or rows; `config` where the file does not measure
 *   under its id, or another evaluation; and whatever loading and measuring throw.
 */
export async function replay(request: ReplayRequest, terminal: Terminal): Promise<ReplayResult> {
  const { backend, signal } = request;
  const path = resolve(request.snapshot);
  const snapshot = parseSnapshotText(await readTextFile(path, "replay"), path);
  const weights = await savedFolder(snapshot, path);
  const evaluation = await evaluationOf(snapshot, request.from);
  const items = Math.floor(snapshot.timing.items / (evaluation.samplesPerItem ?? 1));
  if (items === 0)
    throw wrong(path, `no measured items (${snapshot.status})`, "a snapshot with rows", "Name another one.");
  await useBackend(backend === undefined ? {} : { backend });
  const { model: base, tokenizer } = await openModel(request.model, terminal);
  let model: CheckpointLM | null = null;
  try {
    const isAdapter = await exists(join(weights, "adapter_config.json"));
    model = isAdapter ? await loadLora(base, weights) : await loadCausalLM(weights);
    const { phase, id, step, on, provenance } = snapshot;
    const { snapshot: again } = await measure(evaluation, inMemory(model, tokenizer), {
      as: { phase, id, step },
      seed: provenance.seed,
      on,
      guards: tfjsGuards(model),
      ...(items < (provenance.items ?? items) && { limit: items }),
      ...(signal && { signal }),
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

function metricsOf(old: Snapshot, fresh: Snapshot): readonly ReplayedMetric[] {
  const sizeOf = (unit: string) =>
    Object.values(old.metrics).reduce(
      (most, one) => (one.unit === unit ? Math.max(most, Math.abs(one.value ?? 0)) : most),
      0,
    );
  return [...new Set([...Object.keys(old.metrics), ...Object.keys(fresh.metrics)])].map((name) => {
    const [one, other] = [old.metrics[name], fresh.metrics[name]];
    const [before, now] = [one?.value ?? null, other?.value ?? null];
    const { unit } = (one ?? other)!;
    const tolerance = toleranceOf(unit, sizeOf(unit));
    const isClose = before === null || now === null ? before === now : Math.abs(now - before) <= tolerance;
    return { name, unit, before, now, tolerance, isSame: isClose && one?.n === other?.n };
  });
}

/** What tells why a metric is another one. */
function differencesOf(one: Snapshot, other: Snapshot): readonly string[] {
  const [old, fresh] = [one.provenance, other.provenance];
  const differences = {
    "the weights' fingerprint": [one.weights, other.weights],
    "the evaluation's options or data": [canonicalJson(old.evaluation), canonicalJson(fresh.evaluation)],
    "the evaluation's version": [one.evaluation_version, other.evaluation_version],
    "the tokenizer": [old.tokenizer, fresh.tokenizer],
    // A part of them has another hash.
    "the items": old.items === fresh.items ? [old.items_hash, fresh.items_hash] : [],
    "the rows' number": [one.timing.items, other.timing.items],
  };
  return Object.entries(differences)
    .filter(([, [before, after]]) => before !== after)
    .map(([what]) => what);
}

/** A path is relative to the run's folder, which may have been moved, or to where the run was started. */
async function savedFolder({ saved }: Snapshot, path: string): Promise<string> {
  const expected = "a snapshot of a run with saveAdapterAtFiring";
  const fix = "Train with `saveAdapterAtFiring: true`; what was not kept cannot be measured again.";
  if (saved === undefined) throw wrong(path, "no saved weights", expected, fix);
  if (saved.path === null) throw wrong(path, `weights that were not saved: ${saved.error}`, expected, fix);
  const candidates = [resolve(runDirOf(path), saved.path), resolve(saved.path)];
  for (const folder of candidates) if (await exists(folder)) return folder;
  throw wrong(
    path,
    `saved weights "${saved.path}" that are not there`,
    `a folder ${candidates.join(" or ")}`,
    "Put it back.",
  );
}

/** The folder above the `periodic_eval` in which the snapshot lies; that of the snapshot where there is none. */
function runDirOf(path: string): string {
  const parts = dirname(path).split(/[\\/]/);
  const at = parts.lastIndexOf("periodic_eval");
  return at < 0 ? dirname(path) : parts.slice(0, at).join("/");
}

async function evaluationOf(snapshot: Snapshot, from: ReplayRequest["from"]): Promise<AnyEvaluation> {
  if ("questions" in from) return capabilityOf(snapshot, from.questions);
  const { id, phase, evaluation: name } = snapshot;
  const { file, at, block } = await readEvalBlock(from.config);
  const callbacks = await withBlockPlace(file, at, async () =>
    buildPeriodicCallbacks(block, { phase, openJudge: openGrader }),
  );
  const evaluation = callbacks.find((callback) => callback.id === id)?.asks[0];
  if (evaluation?.name === name) return evaluation;
  throw new PeriodicEvalError({
    code: "config",
    where: from.config,
    got: `a configuration that measures ${callbacks.map((one) => one.id).join(", ") || "nothing"} in ${phase}`,
    expected: `the evaluation ${name} under the id ${id}`,
    fix: "Name the configuration of the run.",
  });
}

/** All but the questions is in the provenance. */
function capabilityOf({ evaluation, provenance }: Snapshot, questions: string): AnyEvaluation {
  const told = (provenance.evaluation ?? {}) as unknown as Omit<CapabilityOptions, "shots"> & {
    readonly shots?: unknown;
  };
  const { method, subsample, system, personas, shots } = told;
  if (evaluation !== "capability" || method === undefined || (shots ?? null) !== null) {
    throw new PeriodicEvalError({
      code: "config",
      where: "--questions",
      got: evaluation === "capability" ? "capability with solved examples" : `a snapshot of ${evaluation}`,
      expected: "a snapshot of capability without solved examples",
      fix: "Name the run's configuration by --config.",
    });
  }
  return capabilityEvaluation({
    questions,
    method,
    ...(subsample !== undefined && { subsample }),
    ...(system !== undefined && { system }),
    ...(personas !== undefined && { personas }),
  });
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

function wrong(where: string, got: string, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({ code: "data", where, got, expected, fix });
}
