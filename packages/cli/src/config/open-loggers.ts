import type { Logger, PeriodicEval } from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/data/config";
import type { ValuePath } from "@periodic-eval/contracts";
import { isRecord, valueAt } from "@periodic-eval/contracts/options";
import { join } from "node:path";
import { atPlace, awaitAll, resolveLoggerPaths, withOptionPlace } from "./config-file.ts";

type OpenLogger = (runDir: string, options: object) => Promise<Logger>;

/** Each imports its logger only when it is used. The loggers check their own options. */
const openers = {
  jsonl: async (runDir, options) => {
    const { jsonlLogger } = await import("@periodic-eval/loggers/jsonl");
    return jsonlLogger({ path: join(runDir, "log.jsonl"), ...options });
  },
  csv: async (runDir, options) => {
    const { csvLogger } = await import("@periodic-eval/loggers/csv");
    return csvLogger({ path: join(runDir, "log.csv"), ...options });
  },
  tensorboard: async (runDir, options) => {
    const { tensorBoardLogger } = await import("@periodic-eval/loggers/tensorboard");
    return tensorBoardLogger({ logDir: join(runDir, "tensorboard"), ...options });
  },
  wandb: async (runDir, options) => {
    const { wandbLogger } = await import("@periodic-eval/loggers/wandb");
    return wandbLogger({ runDir, ...options });
  },
  mlflow: async (runDir, options) => {
    const { mlflowLogger } = await import("@periodic-eval/loggers/mlflow");
    return mlflowLogger({ runDir, ...options });
  },
} as const satisfies Readonly<Record<string, OpenLogger>>;

type LoggerName = keyof typeof openers;

/** Names of loggers in a file. The console logger is always on and needs no entry. */
export const loggerNames = Object.keys(openers) as readonly LoggerName[];

/**
 * Opens the loggers of a file. By default their files go to the run's folder.
 *
 * @throws PeriodicEvalError `config` with file and line for an unknown or wrong option.
 */
export function openLoggers(file: ConfigFile, loggers: unknown, runDir: string): Promise<readonly Logger[]> {
  return awaitAll(
    loggerNames.flatMap((name) => {
      const at = ["loggers", name];
      const options = valueAt(loggers, [name]);
      if (!isRecord(options)) return [];
      const open = () => openers[name](runDir, resolveLoggerPaths(file, at, options));
      return [withOptionPlace(file, at, open)];
    }),
  );
}

/** Opens the logger of the `notify` of a block at `at` in a file: a list of one, or of none without it. */
export async function openNotify(
  notify: PeriodicEval["notify"],
  runDir: string,
  written: { readonly file: ConfigFile; readonly at: ValuePath } | null,
): Promise<readonly Logger[]> {
  if (notify === undefined) return [];
  const { notifyLogger } = await import("@periodic-eval/loggers/notify");
  try {
    return [notifyLogger({ runDir, ...notify })];
  } catch (error) {
    if (written === null) throw error;
    throw atPlace(written.file, error, ([name]) => [
      ...written.at,
      "notify",
      ...(name === "urlEnv" ? ["url_env"] : []),
    ]);
  }
}
