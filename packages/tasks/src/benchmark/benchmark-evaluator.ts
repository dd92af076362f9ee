import * as z from "zod";
import { configError, isRecord, objectWith, parseOptions } from "@periodic-eval/contracts/options";
import {
  everySteps,
  measure,
  PeriodicCallback,
  type AnyEvaluation,
  type CallbackContext,
  type EvaluableModel,
  type Json,
  type MeasureOptions,
  type Row,
  type Snapshot,
  type SnapshotKey,
  type Message,
} from "@periodic-eval/core";
import { logWarning } from "@periodic-eval/core/session";
import { benchmarkEvaluation } from "./benchmark-evaluation.ts";
import {
  benchmarkShape,
  completeOptions,
  type BenchmarkOptions,
  type CompleteOptions,
} from "./benchmark-options.ts";
import { splits, type BenchmarkRow, type Split, type BenchmarkVerdict } from "./benchmark-task.ts";
import { openEngine, type CompletionModel } from "./engine.ts";
import {
  folderStore,
  type BenchmarkStore,
  uploads,
  type StoreFailure,
  type Uploads,
} from "./stores/store.ts";

export interface BenchmarkEvaluatorOptions extends BenchmarkOptions {
  /** Measures the split `val` every `runEvery` steps, at the start and at the end; 0 (default) does not measure in the loop. */
  readonly runEvery?: number;
  /** A folder that also receives them, like `folderStore`. Default none. */
  readonly workspaceDir?: string;
  /** Receives rollouts and settled snapshots, in the background. Default none. */
  readonly store?: BenchmarkStore;
}

export interface BenchmarkRunOptions extends Omit<MeasureOptions, "limit"> {
  /** Default `test`. */
  readonly split?: Split;
  /** Replaces the evaluator's `limit`; null for all tasks. */
  readonly limit?: number | null;
}

const steps = "a number of steps: an integer of 0 or more";

const optionsSchema = z.strictObject({
  ...benchmarkShape,
  runEvery: z
    .int(steps)
    .nonnegative(steps)
    .meta({ fix: "Write 0 to measure with `evaluate` only." })
    .optional(),
  workspaceDir: z
    .string("a folder")
    .min(1, "a folder")
    .meta({ fix: "Leave it out to store nothing there." })
    .optional(),
  store: objectWith<BenchmarkStore>(["put"], "a store")
    .meta({ fix: "Use folderStore(path), httpStore({ url }) or { name, put }." })
    .optional(),
} satisfies Record<keyof BenchmarkEvaluatorOptions, z.ZodType>);

/**
 * Runs a custom benchmark (`docs/guides/custom-benchmark.md`): as a callback it measures the split `val` while a model is trained, and
 * `evaluate` and `measure` measure the split `test` afterwards, with the same options and chat template.
 *
 *     const benchmark = new BenchmarkEvaluator({ name: "arithmetic", benchmark: "benchmarks/arithmetic", runEvery: 50 });
 *     trainer.addCallback(benchmark);
 *     await trainer.train();
 *     const { pass_rate } = await benchmark.evaluate(model);
 *
 * At each measurement, in the loop and after it, stores receive the rollouts (`BenchmarkRollout`: one per completion, with
 * its reward) as `<benchmarkId>/<runId>/<phase>/<name>_step_<N>.rollouts.json`, and then the settled snapshot as
 * `….json` (without `runId` if it is not set). A failing store causes a warning and an entry in `storeFailures`; it stops nothing.
 *
 * @throws PeriodicEvalError `config` for a wrong option. A wrong folder is reported before step 1.
 */
export class BenchmarkEvaluator extends PeriodicCallback {
  readonly #options: BenchmarkOptions;
  readonly #complete: CompleteOptions;
  readonly #engine: CompletionModel | null;
  readonly #uploads: Uploads;

  constructor(options: BenchmarkEvaluatorOptions) {
    parseOptions("BenchmarkEvaluator options", optionsSchema, options);
    const { runEvery = 0, workspaceDir, store, ...benchmark } = options;
    // Checks the options, even if the split `val` is never measured.
    const val = benchmarkEvaluation(benchmark, "val");
    super(runEvery === 0 ? null : val, {
      id: benchmark.name,
      schedule: runEvery === 0 ? [] : [everySteps(runEvery)],
    });
    this.#options = benchmark;
    this.#complete = completeOptions("benchmark options", benchmark);
    this.#engine = this.#complete.engine && openEngine(this.#complete.engine);
    const folder = workspaceDir === undefined ? [] : [folderStore(workspaceDir)];
    this.#uploads = uploads([...folder, ...(store === undefined ? [] : [store])]);
  }

  /** The values that stores failed to take so far. */
  get storeFailures(): readonly StoreFailure[] {
    return this.#uploads.failures;
  }

  onSnapshot(context: CallbackContext, snapshot: Snapshot): void {
    if (snapshot.id !== this.id || snapshot.status === "grading" || this.#uploads.isEmpty) return;
    const { phase, id, step, provenance } = snapshot;
    const writer = nameIn(provenance.model);
    const rollouts = context
      .rows(snapshot)
      .then((rows) =>
        rows.length === 0 ? null : this.#rollouts(rows, { phase, id, step, split: "val", writer }),
      );
    // Each store's upload reports the error.
    rollouts.catch(() => undefined);
    this.#put(snapshot, "rollouts.json", rollouts, (message) => context.warn(message));
    this.#put(snapshot, "json", snapshot as unknown as Json, (message) => context.warn(message));
  }

  /** Waits for the stores, at most 30 seconds. */
  override async close(): Promise<void> {
    await this.#uploads.settle();
  }

  /**
   * Measures a model as `measure` does.
   *
   *     await benchmark.evaluate(model); // { mean_reward: 0.75, pass_rate: 0.75, "pass_rate/topic/numbers": 1, … }
   *
   * @returns The value of each metric, by its name in snapshots. Null: unknown.
   * @throws PeriodicEvalError as `measure`.
   */
  async evaluate(
    model?: EvaluableModel | null,
    options: BenchmarkRunOptions = {},
  ): Promise<Record<string, number | null>> {
    const { snapshot } = await this.measure(model, options);
    return Object.fromEntries(Object.entries(snapshot.metrics).map(([name, { value }]) => [name, value]));
  }

  /**
   * Measures a model once, without a session, and puts the rollouts and the snapshot into the stores. Default of `as`: step 0 of
   * a phase with the split's name.
   *
   * @param model May be left out if the option `engine` is set: the engine writes in any case.
   * @returns The snapshot and its rows, one per task.
   * @throws PeriodicEvalError as `measure`. If too many completions have no grade, the stores still receive the rollouts.
   */
  async measure(
    model?: EvaluableModel | null,
    { split = "test", limit = this.#options.limit ?? null, ...options }: BenchmarkRunOptions = {},
  ): Promise<{ readonly snapshot: Snapshot; readonly rows: readonly BenchmarkRow[] }> {
    parseOptions("BenchmarkEvaluator options.split", z.enum(splits), split);
    const measured = model ?? engineModel(this.#engine);
    const key = options.as ?? { phase: split, id: this.id, step: 0 };
    const put = (kind: string, value: Json) =>
      this.#put(key, kind, value, (message) => logWarning([], `benchmark "${this.id}"`, message));
    const evaluation: AnyEvaluation = benchmarkEvaluation({ ...this.#options, limit }, split);
    const recorded: AnyEvaluation = {
      ...evaluation,
      failure: (rows: readonly Row[]) => {
        put("rollouts.json", this.#rollouts(rows, { ...key, split, writer: measured.identity.name }));
        return evaluation.failure!(rows);
      },
    };
    try {
      const { snapshot, rows } = await measure(recorded, measured, { ...options, as: key });
      put("json", snapshot as unknown as Json);
      return { snapshot, rows: rows as readonly BenchmarkRow[] };
    } finally {
      await this.#uploads.settle();
    }
  }

  #rollouts(rows: readonly Row[], origin: RolloutPlace): Json {
    const writer = this.#engine?.identity.name ?? origin.writer;
    const rollouts = rolloutsOf(rows as readonly BenchmarkRow[], { ...origin, writer }, this.#complete);
    return rollouts as unknown as Json;
  }

  #put(key: SnapshotKey, kind: string, value: Json | Promise<Json>, warn: (message: string) => void): void {
    const { benchmarkId = this.id, runId } = this.#options;
    const folder = [benchmarkId, ...(runId === undefined ? [] : [runId]), key.phase].join("/");
    this.#uploads.put(`${folder}/${key.id}_step_${key.step}.${kind}`, value, ({ store, name, reason }) =>
      warn(`the store "${store}" failed to take ${name}: ${reason}`),
    );
  }
}

const nameIn = (model: Json): string | null =>
  isRecord(model) && typeof model["name"] === "string" ? model["name"] : null;

/** Returns the model to record if only an engine is measured. */
function engineModel(engine: CompletionModel | null): EvaluableModel {
  if (engine !== null) return { identity: engine.identity, contextLength: engine.contextLength };
  throw configError({
    where: "BenchmarkEvaluator",
    got: "no model",
    expected: "a model, or the option `engine`",
    fix: "Pass the model: evaluate(model).",
  });
}

/** One completion of a task with its reward, as stores receive it. A value that is not known is null. */
export interface BenchmarkRollout {
  readonly benchmark_id: string;
  readonly run_id: string | null;
  /** The option `modelName`, or else the name of the engine or model that wrote the completion. */
  readonly model_name: string | null;
  readonly phase: string;
  readonly step: number;
  readonly split: Split;
  readonly task_id: string;
  /** Counted from 0. */
  readonly sample_index: number;
  /** The chat as the model got it, with the system message. */
  readonly prompt: readonly Message[];
  readonly completion: string;
  readonly completion_token_ids: readonly number[] | null;
  readonly prompt_tokens: number | null;
  readonly completion_tokens: number | null;
  /** `length`: the completion was cut off. */
  readonly finish: "stop" | "length" | null;
  /** The verifier's reference. */
  readonly expected: Json;
  readonly reward: number | null;
  readonly passed: boolean | null;
  /** The verdict; null if the completion was not graded. */
  readonly status: BenchmarkVerdict["status"] | null;
  /** Why it did not pass, a judge's reply, or the verifier's error. */
  readonly reason: string | null;
  readonly metadata: { readonly [key: string]: Json };
}

interface RolloutPlace extends SnapshotKey {
  readonly split: Split;
  /** The name of the engine or model that wrote the completions; null if unknown. */
  readonly writer: string | null;
}

/** Returns one row per completion, in the order of tasks and samples. */
function rolloutsOf(
  rows: readonly BenchmarkRow[],
  { phase, step, split, writer }: RolloutPlace,
  { name, benchmarkId, runId, modelName, chatTemplate }: CompleteOptions,
): readonly BenchmarkRollout[] {
  const { systemPrompt } = chatTemplate;
  return rows.flatMap(({ id, prompt, answer, metadata, completions, rewards, passed, verdicts }) => {
    const isOwn = systemPrompt === undefined || prompt[0]?.role === "system";
    const messages = isOwn ? prompt : [{ role: "system", content: systemPrompt }, ...prompt];
    return completions.map((completion, at): BenchmarkRollout => ({
      benchmark_id: benchmarkId ?? name,
      run_id: runId,
      model_name: modelName ?? writer,
      phase,
      step,
      split,
      task_id: id,
      sample_index: at,
      prompt: messages,
      completion: completion.text,
      completion_token_ids: completion.ids ?? null,
      prompt_tokens: completion.inputTokens,
      completion_tokens: completion.outputTokens,
      finish: completion.finish,
      expected: answer,
      // Rows of a measurement whose grading failed have no grades.
      reward: rewards?.[at] ?? null,
      passed: passed?.[at] ?? null,
      status: verdicts?.[at]?.status ?? null,
      reason: verdicts?.[at]?.raw ?? null,
      metadata,
    }));
  });
}
