import { PeriodicEvalError } from "@periodic-eval/core";
import { changedError } from "@periodic-eval/core/internal";

/**
 * Runs `action` and prefixes an error about an entry of `tasks` or `evaluations` with the entry's file and line.
 *
 * @param file The suite's file; null if the suite was not a file.
 */
export async function atSuiteEntry<T>(file: string | null, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    if (file === null || !PeriodicEvalError.is(cause)) throw cause;
    const entry = cause.path.slice(0, 2);
    if (entry.length < 2 || !["tasks", "evaluations"].includes(String(entry[0]))) throw cause;
    const { readConfigFile } = await import("@periodic-eval/core/config");
    const place = (await readConfigFile(file)).where(entry).slice(0, -` ${entry.join(".")}`.length);
    throw changedError(cause, { where: `${place}: ${cause.where}`, cause });
  }
}
