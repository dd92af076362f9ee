import type { RowsOf } from "../data/bad-rows-file.ts";
import type { Dataset } from "../data/dataset.ts";
import type { Reading } from "../data/phase-rows.ts";
import type { TrainingData } from "../loop/training-data.ts";
import type { TrainingConfig } from "./training-config.ts";

/** The parts in which training methods differ. */
export interface TrainingMethod<C extends TrainingConfig> {
  /** Name in errors: `SFT`, and `SFTTrainer` for the trainer. */
  readonly name: string;
  /** The checked configuration with its defaults. */
  readonly config: C;
  /** Names of the metrics on held-out rows, without prefix: `loss`, `perplexity`. */
  readonly heldOutMetrics: readonly string[];
  /** Whether there are separate validation rows. */
  readonly hasValidation: boolean;
  /** Sequences of a row in a forward pass: 2 for DPO. Default: 1. */
  readonly sequencesPerRow?: number;
  /** Reads and renders the rows. Reads no weights. */
  read(reading: Reading, of: RowsOf): Promise<MethodRows>;
}

/** Rows of which `MethodRows.texts` are. */
export const mostTexts = 64;

/** The rendered rows of a source. */
export interface MethodRows extends Omit<Dataset, "rows" | "hash"> {
  /** Rows that can be trained on. */
  readonly count: number;
  /** Token ids of some rows, or of their chosen answers. */
  readonly texts: readonly (readonly number[])[];
  /** Returns the tokens of each row of the batches that the rows with these numbers become; packing joins rows. */
  lengthsOf(rows: readonly number[]): readonly number[];
  /**
   * Prepares the steps. A reference of DPO runs here, which may take minutes. The model has the weights from before the phase,
   * even if the phase resumes later.
   */
  prepare(settings: TrainingSettings): Promise<TrainingData>;
}

export interface TrainingSettings {
  /** Seeds everything random in the phase. */
  readonly seed: string;
  readonly phase: string;
  readonly runDir: string;
  warn(where: string, message: string): void;
}
