import type { TrainableLM } from "@periodic-eval/tfjs";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import { busyConfig, rows, temporaryFolder, tokenizer, ungoverned } from "../testing/tiny-run.test-data.ts";
import { SFTTrainer, type SFTTrainerOptions } from "./sft-trainer.ts";

/** Creates a small model whose training uses all randomness; the same weights for the same seed. */
export const openTiny = (seed?: string): TrainableLM =>
  tinyLM({ vocabSize: tokenizer.vocabSize, dropout: 0.2, ...(seed !== undefined && { seed }) });

/** Creates a trainer for it on twenty rows, in a new folder. */
export async function tinySFT(options: Partial<SFTTrainerOptions> = {}) {
  const model = options.model ?? openTiny();
  const runDir = options.runDir ?? (await temporaryFolder());
  const base = { model, tokenizer, dataset: rows(20), runDir, config: busyConfig };
  return { model, runDir, sft: new SFTTrainer({ ...base, loggers: [], session: ungoverned, ...options }) };
}
