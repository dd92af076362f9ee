import { join } from "node:path";
import { storeError, writeFileAtomic, type FileSystem } from "@periodic-eval/store";
import type { CheckpointOptions, EvaluatorOptions } from "./evaluator-options.ts";
import { dateId, harnessResults } from "../harness/results-file.ts";
import type { Subject } from "./identity.ts";
import { appendRun, type MetricsRun } from "../results/metrics-file.ts";
import type { PartialRun, RunFiles } from "./run-files.ts";
import { defaultSuitePath, hashOfSuite, settingsOf, type Suite } from "../suite/suite-file.ts";

export interface Finished {
  readonly partial: PartialRun;
  readonly suite: Suite;
  readonly subject: Subject;
  readonly files: RunFiles;
  readonly fs: FileSystem;
  readonly options: EvaluatorOptions;
}

/**
 * Writes the results of a run whose tasks are all done. Each step can be repeated: after a crash the next `run` promotes it again,
 * and `metrics.json` has it once.
 */
export async function promote(finished: Finished): Promise<MetricsRun> {
  const { partial, files, fs } = finished;
  const run = recordOf(finished);
  await writeFileAtomic(
    join(files.job, `results_${dateId(partial.timestamp)}.json`),
    harnessText(finished, run),
    fs,
  );
  const { tokenizer = null } = finished.options as Partial<CheckpointOptions>;
  const job = { schema_version: 1, run, tokenizer, identity: partial.identity, tasks: snapshotsOf(partial) };
  await writeFileAtomic(join(files.job, "results.json"), `${JSON.stringify(job, null, 2)}\n`, fs);
  await appendRun(files.metrics, run, fs);
  await fs.remove(files.partial).catch((error: unknown) => {
    throw storeError(files.partial, error);
  });
  return run;
}

/** Names the shipped suite in results, without a path of this machine. */
const shippedSuite = "@periodic-eval/tasks/suites/default.yaml";

const snapshotsOf = ({ tasks }: PartialRun) =>
  Object.fromEntries(Object.entries(tasks).map(([name, { snapshot }]) => [name, snapshot]));

function recordOf({ partial, suite, subject, options }: Finished): MetricsRun {
  const results = Object.values(partial.tasks);
  const all = <K extends "metrics" | "stderr" | "n" | "ci95" | "higher_is_better">(key: K) =>
    Object.assign({}, ...results.map((result) => result[key])) as MetricsRun[K];
  const { name, adapter } = subject;
  const { suite: suitePath } = options;
  const args = adapter === null ? `pretrained=${name}` : `pretrained=${name},peft=${adapter}`;
  return {
    name: partial.name,
    method: options.method ?? null,
    model: name,
    adapter,
    config_hash: hashOfSuite(suite),
    config_path:
      typeof suitePath !== "string" ? null : suitePath === defaultSuitePath ? shippedSuite : suitePath,
    model_args: options.modelArgs ?? args,
    timestamp: partial.timestamp,
    metrics: all("metrics"),
    stderr: all("stderr"),
    n: all("n"),
    ci95: all("ci95"),
    higher_is_better: all("higher_is_better"),
    run_hash: partial.run_hash,
    suite: settingsOf(suite),
    extras: { ...options.extras },
  };
}

function harnessText({ partial, suite, subject }: Finished, run: MetricsRun): string {
  const tasks = Object.values(partial.tasks);
  const { chat } = suite;
  return harnessResults(
    tasks.map(({ harness }) => harness),
    {
      model: run.model,
      engine: subject.model.identity.engine,
      dtype: subject.model.identity.dtype,
      modelArgs: run.model_args,
      timestamp: partial.timestamp,
      seed: suite.seed,
      fewshotSeed: suite.fewshot_seed,
      chat: chat && {
        ...(chat.system !== undefined && { system: chat.system }),
        fewshotAsMultiturn: chat.fewshot_as_multiturn ?? true,
      },
      seconds: tasks.reduce((sum, { snapshot }) => sum + snapshot.timing.total_seconds, 0),
    },
  );
}
