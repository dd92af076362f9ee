import { PeriodicEvalError } from "@periodic-eval/core";
import { atWrittenKey, changedError } from "@periodic-eval/contracts/options";
import type { SuiteTask } from "./suite-file.ts";
import type { DataRoot } from "./task-data.ts";

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

interface WrittenTask {
  /** The suite's name. */
  readonly suite: string;
  readonly name: string;
  readonly settings: SuiteTask;
  readonly data: DataRoot;
}

/** Returns an error about an option of a task as one about the suite's setting, or about the data that the caller names. */
export function withTaskSettingPath(error: unknown, { suite, name, settings, data }: WrittenTask): unknown {
  if (!PeriodicEvalError.is(error)) return error;
  const { detail } = error;
  const isAboutData = detail?.kind === "option" && detail.option.name === "data";
  if (isAboutData && settings.data === undefined && data.given !== null)
    return changedError(error, { where: "data (--data)", path: [], cause: error });
  return atWrittenKey(error, settings, { place: `suite "${suite}".tasks.${name}`, path: ["tasks", name] });
}
