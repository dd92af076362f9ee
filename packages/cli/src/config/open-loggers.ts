import type { Logger } from "@periodic-eval/core";
import { join } from "node:path";

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

export type LoggerName = keyof typeof openers;

/** Names of loggers in a file. The console logger is always on and needs no entry. */
export const loggerNames = Object.keys(openers) as readonly LoggerName[];

/**
 * Opens the logger of this name with options from a file. By default its files go to the run's folder.
 *
 * @throws PeriodicEvalError `config` for an unknown or wrong option.
 */
export const openLogger = (name: LoggerName, runDir: string, options: object): Promise<Logger> =>
  openers[name](runDir, options);
