import { modelError } from "@periodic-eval/contracts/options";
import { dirname } from "node:path";
import type { Awaitable } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { makeFolder, nodeFiles, takeLock } from "@periodic-eval/store";
import { checkpointConfig, type CheckpointConfig, factsOf, identityOf, type Subject } from "./identity.ts";
import { evaluate } from "../families/evaluate.ts";
import {
  readEvaluateOptions,
  type CallSampling,
  type Evaluated,
  type EvaluateOptions,
  type OptionsWithReduce,
  type OtherOptions,
  type Reduce,
} from "../families/evaluate-options.ts";
import { checkEvaluatorOptions, type CheckpointOptions, type EvaluatorOptions } from "./evaluator-options.ts";
import { measureTask } from "./measure-task.ts";
import { readMetricsIfPresent, type MetricsRun, checkDocuments } from "../results/metrics-file.ts";
import { openSuite } from "../suite/open-suite.ts";
import { openTasks, type ChosenTask, type OpenTask } from "../suite/open-tasks.ts";
import type { EvaluableTrainer } from "./evaluator-options.ts";
import { finishedRuns, isFinished, type ExpectedRun, checkSameWeights } from "./finished.ts";
import {
  suiteOfTasks,
  taskRegistry,
  readSampling,
  sampleTasks,
  type SamplingInput,
} from "./own-evaluations.ts";
import {
  documentsOf,
  promote,
  readInterrupted,
  removeRunDrafts,
  runFiles,
  writePartial,
  type RunFiles,
} from "./run-files.ts";
import {
  defaultSuitePath,
  atSuite,
  parseSuite,
  readSuite,
  smokeOf,
  type Suite,
  type SuiteDefinition,
} from "../suite/suite-file.ts";

/** The result of `Evaluator.run`. */
export interface SuiteRun {
  /** The run's entry in `metrics.json`. */
  readonly run: MetricsRun;
  /** The folder with `results.json` and lm-evaluation-harness' files. */
  readonly folder: string;
  /** The tasks measured by this call; the others were measured before. */
  readonly measured: readonly string[];
}

/** The suite of a run, and the sampling that was given to `run`. Results and hashes contain both. */
type SampledSuite = Suite & { readonly sampling?: CallSampling };

/** The measured model before it is opened. */
type Known = Pick<Subject, "name" | "adapter"> & Pick<ExpectedRun, "tokenizer" | "facts">;

interface OpenSubject extends Subject {
  /** Returns the current fingerprint of weights that may change during the run. */
  fingerprintNow?(): Awaitable<string | null>;
  dispose(): Awaitable<void>;
}

/**
 * Measures a model with tasks that all methods share, or with a suite of them: the live weights of a trainer, or a checkpoint.
 *
 *     const evaluator = Evaluator.fromTrainer(trainer, { name: "sft", tasks: [sums], results: "results/sums" });
 *     await evaluator.run();
 *
 * Adds results to `<results>/metrics.json`, and writes `results.json` and lm-evaluation-harness' files
 * (`results_<time>.json`, `samples_<task>_<time>.jsonl`) to `<results>/jobs/<name>/`. After each task it writes
 * `metrics.<name>.partial.json`: an interrupted run resumes after its last finished task, if model, adapter, tokenizer, settings
 * and documents are the same; otherwise it throws. If everything that changes a number equals an existing entry of
 * `metrics.json`, nothing is measured. A trainer whose weights have changed gets another entry with its own time; another model,
 * adapter or checkpoint under a name that is taken is refused.
 */
export class Evaluator {
  readonly #options: EvaluatorOptions;
  readonly #names: () => Known;
  readonly #open: () => Promise<OpenSubject>;

  private constructor(options: EvaluatorOptions, names: () => Known, open: () => Promise<OpenSubject>) {
    this.#options = options;
    this.#names = names;
    this.#open = open;
  }

  /**
   * Measures the weights at the time of `run`. Training must not continue during the run.
   *
   * @throws PeriodicEvalError `config` for a wrong option.
   */
  static fromTrainer(trainer: EvaluableTrainer, options: EvaluatorOptions): Evaluator {
    checkEvaluatorOptions(options, false);
    const live = () => {
      const model = trainer.evaluableModel;
      const { name, adapter } = model.identity;
      return { model, name, adapter, tokenizer: null, facts: factsOf({ model, adapter }) };
    };
    const fingerprintNow = () => trainer.modelFingerprint();
    return new Evaluator(options, live, async () => {
      const fingerprint = await fingerprintNow();
      return { ...live(), fingerprint, fingerprintNow, dispose: () => undefined };
    });
  }

  /**
   * Loads a checkpoint when `run` is called, and disposes it afterwards.
   *
   *     const [evaluator, config] = Evaluator.fromCheckpoint("path/to/model", { name: "base", tasks, openModel: openCheckpoint });
   *
   * @param folder A folder in Hugging Face's format, or `owner/name` on the hub.
   * @returns The evaluator, and the configuration that is stored with the checkpoint.
   * @throws PeriodicEvalError `config` for a wrong option, and `model` for a damaged configuration; `run` throws `model` for an
   *   adapter of another model.
   */
  static fromCheckpoint(
    folder: string,
    options: CheckpointOptions,
  ): [evaluator: Evaluator, config: CheckpointConfig] {
    checkEvaluatorOptions(options, true);
    const { adapter = null, tokenizer = null } = options;
    const evaluator = new Evaluator(
      options,
      () => ({ name: folder, adapter, tokenizer, facts: null }),
      () => openCheckpoint(folder, options),
    );
    return [evaluator, checkpointConfig(folder, adapter)];
  }

  /**
   * Whether the results folder has this run: a finished one with this name, model, adapter, tokenizer and suite, and no interrupted
   * one. Each access reads the files, so another program's runs count. False, with a warning, where `run` would throw: for a damaged
   * file, another suite or another model. Weights, documents and the content of a checkpoint are compared by `run` only.
   */
  get done(): boolean {
    const { name, results = "results", smoke = false } = this.#options;
    const suite = this.#suite;
    const { name: model, ...known } = this.#names();
    return isFinished(runFiles(results, name, smoke), { ...known, name, model, suite, smoke });
  }

  /**
   * Measures the suite's tasks that are not measured yet, and writes the results.
   *
   * @param sampling Replaces the sampling of tasks that generate. It is part of the run's settings: `config_hash` and the
   *   hash by which an interrupted run resumes. All runs of a results folder must have the same.
   * @throws PeriodicEvalError `config` or `data` for a wrong suite, wrong documents, sampling that no task takes or the name of
   *   another model's run, before anything is measured; `store` if another process has this run, an interrupted run of this name measured something else, or
   *   the folder's runs measured other documents; and what
   *   tasks throw.
   */
  async run(sampling: CallSampling = {}): Promise<SuiteRun> {
    const { name, results = "results", smoke = false, fs = nodeFiles } = this.#options;
    const files = runFiles(results, name, smoke);
    const { suite, chosen } = await this.#choose("Evaluator.run", sampling);
    await makeFolder(files.job, fs);
    const lease = await takeLock(files.lock, fs);
    try {
      await removeRunDrafts(files, fs);
      const before = await readMetricsIfPresent(files.metrics, fs);
      const { name: model, adapter } = this.#names();
      const run = { name, model, adapter };
      const runs = before === null ? [] : finishedRuns(files.metrics, before, { suite, run });
      return await this.#withTasks(chosen, (subject, open) =>
        this.#measure({ suite, files, subject, open, runs }),
      );
    } finally {
      await lease.release();
    }
  }

  /**
   * Measures all tasks of the suite and returns the value of each one's primary metric, by task. It neither reads nor writes
   * results.
   *
   *     await evaluator.evaluate("sum"); // { arc_challenge: 57, gsm8k: 3 }
   *     await evaluator.evaluate({ reduce: "sum", maxNewTokens: 16 });
   *
   * @throws PeriodicEvalError as `run`, and `config` for a wrong option.
   */
  async evaluate<const M extends Reduce = "mean", const I extends boolean = false>(
    options?: OptionsWithReduce<M, I>,
  ): Promise<Record<string, Evaluated<M, I>>>;
  async evaluate<const M extends Reduce, const I extends boolean = false>(
    reduce: M,
    options?: OtherOptions<I>,
  ): Promise<Record<string, Evaluated<M, I>>>;
  async evaluate(
    ...args: readonly [first?: Reduce | EvaluateOptions, second?: EvaluateOptions]
  ): Promise<Record<string, unknown>> {
    const read = readEvaluateOptions("Evaluator.evaluate", ...args);
    const { temperature, topP, maxNewTokens, samplesPerPrompt, seed: drawn, ...how } = read;
    const sampling = { temperature, topP, maxNewTokens, samplesPerPrompt, seed: drawn };
    const { suite, chosen } = await this.#choose("Evaluator.evaluate", sampling);
    return this.#withTasks(chosen, async (subject, open) => {
      await this.#check(open);
      const values: Record<string, unknown> = {};
      for (const { name, evaluation } of open) {
        const options = { ...this.#call, ...how, seed: seedOfRun(suite) };
        values[name] = await evaluate(evaluation, subject.model, options);
        await checkUnchanged(name, subject);
      }
      return values;
    });
  }

  /** Reads the suite and returns its tasks, with the sampling of the call. */
  async #choose(
    where: string,
    sampling: SamplingInput,
  ): Promise<{ readonly suite: SampledSuite; readonly chosen: readonly ChosenTask[] }> {
    const { smoke = false, tasks } = this.#options;
    const source = this.#suite;
    const checked = readSampling(where, sampling);
    const read = typeof source === "string" ? await readSuite(source) : parseSuite(source, "suite");
    const suite = { ...(smoke ? smokeOf(read) : read), ...(checked && { sampling: checked }) };
    const isOwnFile = typeof source === "string" && source !== defaultSuitePath;
    const folder = isOwnFile ? dirname(source) : ".";
    const root = { given: this.#options.data ?? null, folder };
    const chosen = await this.#atSuite(() => openSuite(suite, taskRegistry(tasks), root, this.#options));
    return { suite, chosen: sampleTasks(where, chosen, checked) };
  }

  #atSuite<T>(action: () => Promise<T>): Promise<T> {
    const suite = this.#suite;
    return atSuite(typeof suite === "string" ? suite : null, action);
  }

  get #suite(): string | SuiteDefinition {
    return this.#options.suite ?? suiteOfTasks(this.#options.tasks);
  }

  /** Opens the model and the tasks' documents. Disposes the model and closes the evaluations afterwards. */
  async #withTasks<T>(
    chosen: readonly ChosenTask[],
    use: (subject: OpenSubject, open: readonly OpenTask[]) => Promise<T>,
  ): Promise<T> {
    let subject: OpenSubject | null = null;
    const open = (model: OpenSubject["model"]) => this.#atSuite(() => openTasks(chosen, model));
    try {
      const { outlineModel } = this.#options as Partial<CheckpointOptions>;
      if (outlineModel !== undefined) {
        const { name, adapter } = this.#names();
        await open((await outlineModel(name, adapter)).model);
      }
      subject = await this.#open();
      await subject.model.check?.(this.#call);
      return await use(subject, await open(subject.model));
    } finally {
      await subject?.dispose();
      for (const { evaluation } of chosen) await evaluation.close?.();
    }
  }

  /** Checks graders and loads references. */
  async #check(open: readonly OpenTask[]): Promise<void> {
    for (const { evaluation } of open) await evaluation.check?.(this.#call);
  }

  get #call() {
    return { signal: this.#options.signal ?? new AbortController().signal };
  }

  async #measure({ suite, files, subject, open, runs }: Preparation): Promise<SuiteRun> {
    const {
      name,
      fs = nodeFiles,
      now = () => new Date(),
      samples = true,
      signal,
      onProgress,
    } = this.#options;
    const identity = identityOf(subject, suite, open);
    const runHash = hashJson(identity);
    const isKnown = subject.fingerprint !== null;
    const interrupted = await readInterrupted(files, { identity, isKnown }, fs);
    const same = runs.find((run) => run.name === name && run.run_hash === runHash);
    if (interrupted === null && isKnown && same !== undefined)
      return { run: same, folder: files.job, measured: [] };
    if (interrupted === null && isKnown && subject.fingerprintNow === undefined)
      checkSameWeights(files.metrics, runs, { name, model: subject.name, adapter: subject.adapter });
    checkDocuments([
      { path: "", runs: [{ name, documents: documentsOf(suite, open) }] },
      { path: files.metrics, runs },
    ]);
    await this.#check(open);

    let partial = interrupted ?? {
      schema_version: 1 as const,
      name,
      timestamp: now().toISOString(),
      run_hash: runHash,
      identity,
      tasks: {},
    };
    if (interrupted === null) await writePartial(files, partial, fs);
    const measured: string[] = [];
    for (const task of open) {
      if (Object.hasOwn(partial.tasks, task.name)) continue;
      const result = await measureTask(task, subject.model, {
        samples: samples ? files.job : null,
        timestamp: partial.timestamp,
        seed: seedOfRun(suite),
        ...(signal && { signal }),
        fs,
        progress: (done, total, pace) => onProgress?.({ task: task.name, done, total, ...pace }),
      });
      await checkUnchanged(task.name, subject);
      partial = { ...partial, tasks: { ...partial.tasks, [task.name]: result } };
      await writePartial(files, partial, fs);
      measured.push(task.name);
    }
    const run = await promote({ partial, suite, subject, open, files, fs, options: this.#options });
    return { run, folder: files.job, measured };
  }
}

/** Returns the seed of sampled completions. */
const seedOfRun = ({ seed, sampling }: SampledSuite): string => String(sampling?.seed ?? seed);

interface Preparation {
  readonly suite: SampledSuite;
  readonly files: RunFiles;
  readonly subject: OpenSubject;
  readonly open: readonly OpenTask[];
  /** The finished runs in `metrics.json`. */
  readonly runs: readonly MetricsRun[];
}

/** Checks that the weights did not change during a task. */
async function checkUnchanged(
  task: string,
  { fingerprint, fingerprintNow, name }: OpenSubject,
): Promise<void> {
  if (fingerprintNow === undefined || (await fingerprintNow()) === fingerprint) return;
  throw modelError(
    `task "${task}"`,
    `weights of "${name}" that changed while they were measured`,
    "a model whose weights do not change during a measurement",
    "Wait for train() to end before run(), or measure in the loop with callbacks.",
  );
}

async function openCheckpoint(folder: string, options: CheckpointOptions): Promise<OpenSubject> {
  const { openModel, adapter = null, tokenizer = null, signal } = options;
  const opened = await openModel(folder, adapter, { tokenizer, ...(signal && { signal }) });
  const dispose = () => opened.dispose?.();
  try {
    const fingerprint = (await opened.fingerprint?.()) ?? opened.model.identity.weights;
    return { model: opened.model, name: folder, adapter, fingerprint, dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}
