import { existsSync, statSync } from "node:fs";
import { join } from "node:path";

/**
 * The `metrics.json` that a path names: itself, or the one of a folder of results, which is no run's. Null for neither.
 */
export function metricsFileAt(path: string): string | null {
  if (existsSync(path) && statSync(path).isFile()) return path;
  const file = join(path, "metrics.json");
  return existsSync(file) && !existsSync(join(path, "periodic_eval")) ? file : null;
}

/** A folder that `feedback` wrote, which is no run's. */
export const isFeedbackFolder = (path: string): boolean =>
  existsSync(join(path, "summary.json")) && !existsSync(join(path, "periodic_eval"));
