import {
  everySteps,
  measure,
  PeriodicCallback,
  PeriodicEvalError,
  type AnyEvaluation,
  type CallbackContext,
  type EvaluableModel,
  type Json,
  type MeasureOptions,
  type Row,
  type Snapshot,
  type SnapshotKey,
  type TrainerCallback,
  type Trigger,
} from "@periodic-eval/core";
import { logWarning } from "@periodic-eval/core/session";
import { checkKeys, checkWord, isCount, quoteValue } from "@periodic-eval/core/internal";
import { benchmarkEvaluation } from "./benchmark-evaluation.ts";
import { benchmarkOptionNames, type BenchmarkOptions } from "./benchmark-options.ts";
import { folderStore } from "./stores/store.ts";
import type { BenchmarkStore } from "./stores/store.ts";
import { uploads, type StoreFailure, type Uploads } from "./stores/uploads.ts";
import { splits, type BenchmarkRow, type Split } from "./benchmark-task.ts";

export interface BenchmarkEvaluatorOptions extends BenchmarkOptions {
  /** Measures the split `val` every so many steps, at the start and at the end; 0 (default): not in the loop. */
  readonly runEvery?: number;
  /** A folder in which snapshots are kept too, as a store of its own; left out: none. */
  readonly workspaceDir?: string;
  /** Where snapshots are put when they are done, in the background; left out: nowhere. */
  readonly store?: BenchmarkStore;
}

export interface BenchmarkRunOptions extends Omit<MeasureOptions, "limit"> {
  /** Default `test`. */
  readonly split?: Split;
  /** In place of the evaluator's `limit`; null for all tasks. */
  readonly limit?: number | null;
}

/**
 * A benchmark of one's own (`docs/own-benchmark.md`), looked at by its split `val` while a model is trained, and by its
 * split `test` after it, with the same options and the same chat template.
 *
 *     const benchmark = new BenchmarkEvaluator({ name: "arithmetic", benchmark: "benchmarks/arithmetic", runEvery: 50 });
 *     trainer.addCallback(benchmark);
 *     await trainer.train();
 *     const { snapshot, rows } = await benchmark.evaluate(model);
 *
 * Each settled snapshot is put into the stores under `<benchmarkId>/<runId>/<phase>/<name>_step_<N>.json` (without `runId`
 * where there is none); what a store does not take becomes a warning and an entry of `storeFailures`, and stops nothing.
 *
 * @throws PeriodicEvalError `config` for a wrong option; what is wrong with the folder is told before step 1.
 */
export class BenchmarkEvaluator implements TrainerCallback {
  readonly id: string;
  readonly asks: readonly AnyEvaluation[];
  readonly triggers: readonly Trigger[];
  readonly #options: BenchmarkOptions;
  readonly #inLoop: PeriodicCallback | null;
  readonly #uploads: Uploads;

  constructor(options: BenchmarkEvaluatorOptions) {
    checkKeys("BenchmarkEvaluator", options, [...benchmarkOptionNames, "runEvery", "workspaceDir", "store"]);
    const { runEvery = 0, workspaceDir, store, ...own } = options;
    // Checks the options, whatever is asked of it later.
    const val = benchmarkEvaluation(own, "val");
    checkOptions(options);
    this.id = own.name;
    this.#options = own;
    this.#inLoop = runEvery === 0 ? null : new PeriodicCallback(val, { schedule: [everySteps(runEvery)] });
    this.asks = this.#inLoop?.asks ?? [];
    this.triggers = this.#inLoop?.triggers ?? [];
    const folder = workspaceDir === undefined ? [] : [folderStore(workspaceDir)];
    this.#uploads = uploads([...folder, ...(store === undefined ? [] : [store])]);
  }

  /** What no store took, so far. */
  get storeFailures(): readonly StoreFailure[] {
    return this.#uploads.failures;
  }

  onTrainBegin(context: CallbackContext): void {
    this.#inLoop?.onTrainBegin(context);
  }

  onStepEnd(context: CallbackContext): void {
    this.#inLoop?.onStepEnd(context);
  }

  onTrainEnd(context: CallbackContext): void {
    this.#inLoop?.onTrainEnd(context);
  }

  onSnapshot(context: CallbackContext, snapshot: Snapshot): void {
    if (snapshot.id !== this.id || snapshot.status === "grading") return;
    this.#put(snapshot, "json", snapshot as unknown as Json, (message) => context.warn(message));
  }

  /** Waits for the stores, half a minute at most. */
  async close(): Promise<void> {
    await this.#uploads.settle();
  }

  /**
   * Measures a model once, without a session, and puts the snapshot and its rows (`….samples.json`) into the stores.
   * Where `as` is left out the snapshot stands for step 0 of a phase named as the split.
   *
   * @returns the rows with it: one for each task.
   * @throws what `measure` throws. Rows of which too many have no grade are in the stores.
   */
  async evaluate(
    model: EvaluableModel,
    { split = "test", limit = this.#options.limit ?? null, ...options }: BenchmarkRunOptions = {},
  ): Promise<{ readonly snapshot: Snapshot; readonly rows: readonly BenchmarkRow[] }> {
    checkWord("evaluate split", split, splits);
    const key = options.as ?? { phase: split, id: this.id, step: 0 };
    const put = (kind: string, value: unknown) =>
      this.#put(key, kind, value as Json, (message) => logWarning([], `benchmark "${this.id}"`, message));
    const evaluation: AnyEvaluation = benchmarkEvaluation({ ...this.#options, limit }, split);
    const kept: AnyEvaluation = {
      ...evaluation,
      failure(rows: readonly Row[]) {
        put("samples.json", rows);
        return evaluation.failure!(rows);
      },
    };
    try {
      const { snapshot, rows } = await measure(kept, model, { ...options, as: key });
      put("json", snapshot);
      return { snapshot, rows: rows as readonly BenchmarkRow[] };
    } finally {
      await this.#uploads.settle();
    }
  }

  #put(key: SnapshotKey, kind: string, value: Json, told: (message: string) => void): void {
    const { benchmarkId = this.id, runId } = this.#options;
    const folder = [benchmarkId, ...(runId === undefined ? [] : [runId]), key.phase].join("/");
    this.#uploads.put(`${folder}/${key.id}_step_${key.step}.${kind}`, value, ({ store, name, reason }) =>
      told(`the store "${store}" did not take ${name}: ${reason}`),
    );
  }
}

function checkOptions({ runEvery = 0, workspaceDir, store }: BenchmarkEvaluatorOptions): void {
  const wrong = (option: string, got: unknown, expected: string, fix: string) =>
    new PeriodicEvalError({
      code: "config",
      where: `BenchmarkEvaluator.${option}`,
      got: quoteValue(got),
      expected,
      fix,
    });
  if (!isCount(runEvery))
    throw wrong("runEvery", runEvery, "a whole number of steps", "Write 0 to measure by `evaluate` alone.");
  if (workspaceDir !== undefined && (typeof workspaceDir !== "string" || workspaceDir === ""))
    throw wrong("workspaceDir", workspaceDir, "a folder", "Leave it out to keep nothing there.");
  if (store !== undefined && typeof (store as Partial<BenchmarkStore> | null)?.put !== "function")
    throw wrong("store", store, "a store", "Write folderStore(path), httpStore({ url }) or { name, put }.");
}
