import { PeriodicEvalError } from "@periodic-eval/core";
import type { FileReader } from "@periodic-eval/store";
import type { ReadResults } from "@periodic-eval/dashboard/server";
import { readMetrics, readSamples, type RunSamples } from "@periodic-eval/tasks";
import { dirname } from "node:path";

/**
 * Reads the runs of a `metrics.json` and their samples in the same folder.
 *
 * @param fs May refuse samples that exceed its limits. Their run then has no samples, and changes are computed as for
 *   independent samples.
 * @throws PeriodicEvalError `store` if the file is missing or damaged.
 */
export async function readResults(file: string, fs?: FileReader): Promise<ReadResults> {
  const unlessOverLimit = (error: unknown): RunSamples => {
    // An error with a cause is a failure to read, not a refusal.
    const isRefusal = PeriodicEvalError.is(error, "store") && error.cause === undefined;
    if (fs === undefined || !isRefusal) throw error;
    return new Map();
  };
  const { runs } = await readMetrics(file, fs);
  const samples: RunSamples[] = [];
  // One run at a time: a run's MMLU samples are 100 MB of JSON.
  for (const run of runs) samples.push(await readSamples(dirname(file), run, fs).catch(unlessOverLimit));
  return { runs, samples };
}
