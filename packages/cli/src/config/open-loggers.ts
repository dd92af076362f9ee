import type { Logger } from "@periodic-eval/core";
import { checkKeys } from "@periodic-eval/core/internal";
import type { CsvOptions } from "@periodic-eval/loggers/csv";
import type { JsonlOptions } from "@periodic-eval/loggers/jsonl";
import type { MlflowOptions } from "@periodic-eval/loggers/mlflow";
import type { TensorBoardOptions } from "@periodic-eval/loggers/tensorboard";
import type { WandbOptions } from "@periodic-eval/loggers/wandb";
import { join } from "node:path";

/** All that a file can say of a logger; its clock is for code alone. */
type Told<Options> = Readonly<Record<Exclude<keyof Options, "now">, true>>;

/** What makes a logger of a run's folder and its options, which it checks itself; loaded where it is asked for. */
interface Opener<Options> {
  readonly options: Told<Options>;
  open(runDir: string, options: object): Promise<Logger>;
}

const jsonl: Opener<JsonlOptions> = {
  options: { path: true },
  async open(runDir, options) {
    const { jsonlLogger } = await import("@periodic-eval/loggers/jsonl");
    return jsonlLogger({ path: join(runDir, "log.jsonl"), ...options });
  },
};

const csv: Opener<CsvOptions> = {
  options: { path: true },
  async open(runDir, options) {
    const { csvLogger } = await import("@periodic-eval/loggers/csv");
    return csvLogger({ path: join(runDir, "log.csv"), ...options });
  },
};

const tensorboard: Opener<TensorBoardOptions> = {
  options: { logDir: true },
  async open(runDir, options) {
    const { tensorBoardLogger } = await import("@periodic-eval/loggers/tensorboard");
    return tensorBoardLogger({ logDir: join(runDir, "tensorboard"), ...options });
  },
};

const wandb: Opener<WandbOptions> = {
  options: {
    project: true,
    entity: true,
    runName: true,
    config: true,
    baseUrl: true,
    runDir: true,
    closeSeconds: true,
  },
  async open(runDir, options) {
    const { wandbLogger } = await import("@periodic-eval/loggers/wandb");
    return wandbLogger({ runDir, ...options });
  },
};

const mlflow: Opener<MlflowOptions> = {
  options: { trackingUri: true, experiment: true, runName: true, runDir: true, closeSeconds: true },
  async open(runDir, options) {
    const { mlflowLogger } = await import("@periodic-eval/loggers/mlflow");
    return mlflowLogger({ runDir, ...options });
  },
};

const openers = { jsonl, csv, tensorboard, wandb, mlflow } as const;
type LoggerName = keyof typeof openers;

/** What a file calls loggers by; the console's is always there. */
export const loggerNames = Object.keys(openers) as readonly LoggerName[];

/**
 * The logger that a file calls by this name, with the options that the file gives it.
 *
 * @throws PeriodicEvalError `config` for an option that is unknown or wrong.
 */
export async function openLogger(name: LoggerName, runDir: string, options: object): Promise<Logger> {
  checkKeys(`loggers.${name}`, options, Object.keys(openers[name].options));
  return openers[name].open(runDir, options);
}
