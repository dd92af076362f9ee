import type { FitLimits } from "@periodic-eval/core/model";
import type { Pool, Replica } from "./pool.ts";

/** A model on a server: the base model, or an adapter that is loaded on it. */
export interface Target {
  /** Names the model in errors. */
  readonly where: string;
  /** Its name on the server. */
  readonly name: string;
  readonly isAdapter: boolean;
  readonly pool: Pool;
  /** Limits of scored sequences. */
  readonly limits: FitLimits;
  /** Longest sequence of prompt and completion, or Infinity. */
  readonly contextLimit: number;
  /** Log-probabilities of the next token that the server returns per request; 0 if it returns none. */
  readonly topCount: number;
  /** Whether the log-probabilities of generated tokens are those of the model, before temperature and top-p. */
  readonly hasTokenNats: boolean;
  /** Runs work on a replica that has the model. */
  run<T>(signal: AbortSignal, work: (replica: Replica) => Promise<T>): Promise<T>;
}
