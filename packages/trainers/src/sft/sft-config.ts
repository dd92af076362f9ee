import { z } from "zod";
import { parseTrainingConfig, trainingFields } from "../trainer/training-config.ts";

const sftConfigSchema = z.strictObject(trainingFields);

export type SFTConfig = z.infer<typeof sftConfigSchema>;

/** The configuration with its defaults. Throws a `config` error that names the option, and for an unknown one the nearest. */
export const parseSFTConfig = (given: Partial<SFTConfig> = {}): SFTConfig =>
  parseTrainingConfig("SFT config", sftConfigSchema, given);
