import { PeriodicEvalError } from "@periodic-eval/core";
import type { FileReader } from "@periodic-eval/core/snapshots";
import type { ReadResults } from "@periodic-eval/dashboard/server";
import { readMetrics, readSamples, type RunSamples } from "@periodic-eval/tasks";
import { dirname } from "node:path";

/**
 * The runs of a `metrics.json`, and what the samples beside it tell of their documents.
 *
 * @throws PeriodicEvalError `store` for a file that is not there or damaged; of samples only what `fs` refuses is left out.
 */
export async function readResults(file: string, fs?: FileReader): Promise<ReadResults> {
  // A reader of files that bounds them may refuse samples: changes are then as of independent samples, and say so. What has a
  // cause failed.
  const unlessBounded = (error: unknown): RunSamples => {
    const isRefusal = PeriodicEvalError.is(error, "store") && error.cause === undefined;
    if (fs === undefined || !isRefusal) throw error;
    return new Map();
  };
  const { runs } = await readMetrics(file, fs);
  const samples: RunSamples[] = [];
  // One after the other: of MMLU a run's samples are a hundred megabytes of text.
  for (const run of runs) samples.push(await readSamples(dirname(file), run, fs).catch(unlessBounded));
  return { runs, samples };
}
