import type { Snapshot } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { DPOTrainer, type DPOTrainerOptions } from "../dpo/dpo-trainer.ts";
import { SFTTrainer, type SFTTrainerOptions } from "../sft/sft-trainer.ts";
import type { TrainerOptions } from "../trainer/trainer-options.ts";
import { recording, temporaryFolder, tokenizer, ungoverned, weightsOf } from "./tiny-run.test-data.ts";

/** The options that a test chooses; the rest is the same in every test. */
type Given<O extends TrainerOptions> = Omit<O, "tokenizer" | "runDir" | "loggers"> &
  Partial<Pick<O, "runDir">>;

/** Trains with a recording logger and without overhead limit, by default in a new folder. The caller disposes the model. */
export const trainSFT = (given: Given<SFTTrainerOptions>) =>
  recorded(given, (options) => new SFTTrainer(options));

/** Like `trainSFT`, on preference pairs. */
export const trainDPO = (given: Given<DPOTrainerOptions>) =>
  recorded(given, (options) => new DPOTrainer(options));

async function recorded<O extends Given<TrainerOptions>>(
  given: O,
  open: (options: O & Pick<TrainerOptions, "tokenizer" | "runDir" | "loggers">) => Pick<SFTTrainer, "train">,
) {
  const runDir = given.runDir ?? (await temporaryFolder());
  const logger = recording();
  const trainer = open({ session: ungoverned, ...given, tokenizer, runDir, loggers: [logger] });
  const result = await trainer.train();
  const { metrics, warnings } = logger;
  return { result, runDir, metrics, warnings, weights: await weightsOf(given.model) };
}

export async function snapshotsOf(runDir: string): Promise<Snapshot[]> {
  return (await readRun(runDir)).phases.flatMap(({ snapshots }) => snapshots);
}

/** Returns the evidence of guards that detected a disturbance, or could not check. */
export const notIntact = (snapshots: readonly Snapshot[]) =>
  snapshots.flatMap(({ receipt }) => receipt).filter(({ intact }) => intact !== true);
