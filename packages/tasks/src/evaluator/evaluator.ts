import { dirname } from "node:path";
import { PeriodicEvalError, type Awaitable } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { nodeFiles, storeError, takeLock, type FileSystem } from "@periodic-eval/core/snapshots";
import { isOfCheckpoint, otherBase, readAdapterBase } from "./adapter-base.ts";
import { checkEvaluatorOptions, type CheckpointOptions, type EvaluatorOptions } from "./evaluator-options.ts";
import { identityOf, type Subject } from "./identity.ts";
import { measureTask } from "./measure-task.ts";
import { checkSuite, readMetricsIfPresent, type MetricsRun } from "../results/metrics-file.ts";
import { chooseTasks, openTasks, type OpenTask } from "../suite/open-tasks.ts";
import type { EvaluableTrainer, OpenedModel } from "./evaluator-options.ts";
import { promote } from "./promote.ts";
import { goOnFrom, runFiles, sweep, writePartial, type RunFiles } from "./run-files.ts";
import {
  defaultSuitePath,
  hashOfSuite,
  parseSuite,
  readSuite,
  settingsOf,
  smokeOf,
  type Suite,
} from "../suite/suite-file.ts";

/** What became of a run. */
export interface SuiteRun {
  /** As it stands in `metrics.json`. */
  readonly run: MetricsRun;
  /** With `results.json` and lm-evaluation-harness' files. */
  readonly folder: string;
  /** Tasks measured now; the others were measured before. */
  readonly measured: readonly string[];
}

interface OpenSubject extends Subject {
  /** Of weights that could change meanwhile. */
  fingerprintNow?(): Awaitable<string | null>;
  dispose(): void;
}

/**
 * Measures a model by a suite, the same for all methods: the live weights of a trainer, or a checkpoint.
 *
 *     const evaluator = Evaluator.fromTrainer(trainer, { name: "sft", tasks });
 *     await evaluator.run();
 *
 * Results are added to `<results>/metrics.json`, and written to `<results>/jobs/<name>/` as `results.json` and in the form of
 * lm-evaluation-harness (`results_<time>.json`, `samples_<task>_<time>.jsonl`). On the way they are kept in
 * `metrics.<name>.partial.json`, whole after each task: a run that died goes on behind its last task when it is run again,
 * of the same model, adapter, tokenizer, settings and documents; of others it is refused. A name that stands in
 * `metrics.json` already gets a second entry with its own time, and nothing is replaced; where everything that changes a
 * number is the same, that run is done, and nothing is measured.
 */
export class Evaluator {
  readonly #options: EvaluatorOptions;
  readonly #open: () => Promise<OpenSubject>;
  #done = false;

  private constructor(options: EvaluatorOptions, open: () => Promise<OpenSubject>) {
    this.#options = options;
    this.#open = open;
  }

  /**
   * Measures the weights as they are when `run` is called; training stands still meanwhile.
   *
   * @throws PeriodicEvalError `config` for a wrong option, settings that are the suite's among them.
   */
  static fromTrainer(trainer: EvaluableTrainer, options: EvaluatorOptions): Evaluator {
    checkEvaluatorOptions(options, false);
    return new Evaluator(options, async () => {
      const model = trainer.evaluableModel;
      const fingerprint = await trainer.modelFingerprint();
      const { name, adapter } = model.identity;
      const fingerprintNow = () => trainer.modelFingerprint();
      return { model, name, adapter, fingerprint, fingerprintNow, dispose: () => undefined };
    });
  }

  /**
   * Loads a checkpoint when `run` is called, and disposes it.
   *
   * @param folder a folder in Hugging Face's form, or `owner/name` on the hub.
   * @throws PeriodicEvalError `config` for a wrong option; `run` throws `model` for an adapter of another model.
   */
  static fromCheckpoint(folder: string, options: CheckpointOptions): Evaluator {
    checkEvaluatorOptions(options, true);
    return new Evaluator(options, () => openCheckpoint(folder, options));
  }

  /** Whether the last `run` came to its end. */
  get done(): boolean {
    return this.#done;
  }

  /**
   * @throws PeriodicEvalError `config` or `data` for a suite or documents that are wrong, before anything is measured;
   *   `store` where another process makes this run, or where an earlier one was begun of something else; and what tasks throw.
   */
  async run(): Promise<SuiteRun> {
    this.#done = false;
    const { name, results = "results", smoke = false, tasks, fs = nodeFiles } = this.#options;
    const { suite: given = defaultSuitePath } = this.#options;
    const read = typeof given === "string" ? await readSuite(given) : parseSuite(given, "suite");
    const suite = smoke ? smokeOf(read) : read;
    const files = runFiles(results, name, smoke);
    const isOwnFile = typeof this.#options.suite === "string";
    const data = this.#options.data ?? (isOwnFile ? dirname(given as string) : ".");
    const chosen = chooseTasks(suite, tasks, data);
    await makeFolders(files, fs);
    const release = await takeLock(files.lock, fs);
    try {
      await sweep(files, fs);
      const before = await readMetricsIfPresent(files.metrics, fs);
      if (before !== null) {
        checkSuite(files.metrics, before, { config_hash: hashOfSuite(suite), suite: settingsOf(suite) });
      }
      const subject = await this.#open();
      try {
        await subject.model.check?.(this.#call);
        const open = await openTasks(chosen, subject.model);
        for (const { evaluation } of open) await evaluation.check?.(this.#call);
        const result = await this.#measure({ suite, files, subject, open, runs: before?.runs ?? [] });
        this.#done = true;
        return result;
      } finally {
        subject.dispose();
      }
    } finally {
      await release();
    }
  }

  get #call() {
    return { signal: this.#options.signal ?? new AbortController().signal };
  }

  async #measure({ suite, files, subject, open, runs }: Going): Promise<SuiteRun> {
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
    const found = await goOnFrom(files, { identity, isKnown }, fs);
    const same = runs.find((run) => run.name === name && run.run_hash === runHash);
    if (found === null && isKnown && same !== undefined)
      return { run: same, folder: files.job, measured: [] };

    let partial = found ?? {
      schema_version: 1 as const,
      name,
      timestamp: now().toISOString(),
      run_hash: runHash,
      identity,
      tasks: {},
    };
    if (found === null) await writePartial(files, partial, fs);
    const measured: string[] = [];
    for (const one of open) {
      if (Object.hasOwn(partial.tasks, one.name)) continue;
      const result = await measureTask(one, subject.model, {
        samples: samples ? files.job : null,
        timestamp: partial.timestamp,
        seed: suite.seed,
        ...(signal && { signal }),
        fs,
        progress: (done, total) => onProgress?.({ task: one.name, done, total }),
      });
      await checkStill(one.name, subject);
      partial = { ...partial, tasks: { ...partial.tasks, [one.name]: result } };
      await writePartial(files, partial, fs);
      measured.push(one.name);
    }
    const run = await promote({ partial, suite, subject, files, fs, options: this.#options });
    return { run, folder: files.job, measured };
  }
}

interface Going {
  readonly suite: Suite;
  readonly files: RunFiles;
  readonly subject: OpenSubject;
  readonly open: readonly OpenTask[];
  /** Of `metrics.json`, before this one. */
  readonly runs: readonly MetricsRun[];
}

/** A task is of one model, or it is of none. */
async function checkStill(task: string, { fingerprint, fingerprintNow, name }: OpenSubject): Promise<void> {
  if (fingerprintNow === undefined || (await fingerprintNow()) === fingerprint) return;
  throw new PeriodicEvalError({
    code: "model",
    where: `task "${task}"`,
    got: `weights of "${name}" that changed while they were measured`,
    expected: "a model that stands still",
    fix: "Wait for train() to end before run(), or measure in the loop by callbacks.",
  });
}

async function makeFolders({ job }: RunFiles, fs: FileSystem): Promise<void> {
  try {
    await fs.makeFolder(job);
  } catch (error) {
    throw storeError(job, error);
  }
}

async function openCheckpoint(folder: string, options: CheckpointOptions): Promise<OpenSubject> {
  const { openModel, adapter = null, tokenizer = null } = options;
  const base = adapter === null ? null : await readAdapterBase(adapter);
  const isSame = base === null ? null : await isOfCheckpoint(base, folder);
  // Weights tell more than names, and only where there are none the names decide.
  if (isSame === false && base!.weights === null) throw otherBase(base!, adapter!, folder);
  const opened: OpenedModel = await openModel({ folder, adapter, tokenizer });
  const dispose = () => opened.dispose?.();
  try {
    const weights = base?.weights == null ? null : ((await opened.baseFingerprint?.()) ?? null);
    const isOther = weights === null ? isSame === false : weights !== base!.weights;
    if (isOther) throw otherBase(base!, adapter!, folder);
    const fingerprint = (await opened.fingerprint?.()) ?? opened.model.identity.weights;
    return { model: opened.model, name: folder, adapter, fingerprint, dispose };
  } catch (error) {
    dispose();
    throw error;
  }
}
