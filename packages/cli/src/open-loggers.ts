import type { Logger } from "@periodic-eval/core";
import { join } from "node:path";

/** What makes a logger of a run's folder and its options, which it checks itself; loaded where it is asked for. */
type Opener = (runDir: string, options: object) => Promise<Logger>;

/** Loggers by the names that a file calls them by; the console's is always there. */
export const loggerOpeners: Readonly<Record<string, Opener>> = {
  async jsonl(runDir, options) {
    const { jsonlLogger } = await import("@periodic-eval/loggers/jsonl");
    return jsonlLogger({ path: join(runDir, "log.jsonl"), ...options });
  },
  async csv(runDir, options) {
    const { csvLogger } = await import("@periodic-eval/loggers/csv");
    return csvLogger({ path: join(runDir, "log.csv"), ...options });
  },
  async tensorboard(runDir, options) {
    const { tensorBoardLogger } = await import("@periodic-eval/loggers/tensorboard");
    return tensorBoardLogger({ logDir: join(runDir, "tensorboard"), ...options });
  },
  async wandb(runDir, options) {
    const { wandbLogger } = await import("@periodic-eval/loggers/wandb");
    return wandbLogger({ runDir, ...options });
  },
  async mlflow(runDir, options) {
    const { mlflowLogger } = await import("@periodic-eval/loggers/mlflow");
    return mlflowLogger({ runDir, ...options });
  },
};
