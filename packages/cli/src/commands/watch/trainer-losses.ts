import type { Logger } from "@periodic-eval/core";
import { consoleLogger } from "@periodic-eval/loggers/console";
import type { LoggedMetrics } from "@periodic-eval/remote";
import type { Terminal } from "../../terminal/terminal.ts";

/** The metrics that a trainer logged between two checkpoints, for loggers that expect them step by step. */
export class TrainerLosses {
  #entries: readonly LoggedMetrics[] = [];
  /** Loggers that have received the entries. */
  readonly #served = new Set<Logger>();

  /** Takes the entries after a step, and returns them. */
  next(losses: readonly LoggedMetrics[], after: number): readonly LoggedMetrics[] {
    this.#entries = losses.filter(({ step }) => step > after);
    this.#served.clear();
    return this.#entries;
  }

  /**
   * Returns a logger that receives each entry with its own step and epoch when the session logs the last one. Metrics that
   * callbacks report come later and pass unchanged.
   */
  forward(logger: Logger): Logger {
    return {
      name: logger.name,
      ...(logger.patienceSeconds !== undefined && { patienceSeconds: logger.patienceSeconds }),
      begin: (at) => logger.begin?.(at),
      snapshot: (snapshot) => logger.snapshot?.(snapshot),
      train: async (metrics, at) => {
        if (this.#entries.length === 0 || this.#served.has(logger)) return logger.train?.(metrics, at);
        this.#served.add(logger);
        for (const { step, epoch, metrics: logged } of this.#entries) {
          const runStep = at.runStep - at.step + step;
          await logger.train?.(logged, { ...at, step, runStep, epoch: epoch ?? at.epoch });
        }
      },
      event: (event) => logger.event?.(event),
      end: (at) => logger.end?.(at),
      close: () => logger.close?.(),
    };
  }
}

/** The console without lines of training steps, whose speed is not known here. */
export function consoleWithoutSteps(terminal: Terminal): Logger {
  const { train: _, ...logger } = consoleLogger({ ...terminal, closingLine: false });
  return logger;
}
