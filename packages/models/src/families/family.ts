import type { DecoderDescription } from "../decoder/description.ts";
import type { WeightNames } from "../decoder/weights.ts";
import type { ConfigReader } from "./config/config-reader.ts";

/** One kind of checkpoint: its configuration and the names of its weights. */
export interface Family {
  /** `model_type` of the configuration. */
  readonly modelType: string;
  /** Throws a `model` error that names the option where one is not supported. */
  describe(config: ConfigReader): DecoderDescription;
  readonly names: WeightNames;
  /** What some checkpoints call the head instead. */
  readonly otherHead?: string;
  /** What all names but the head's begin with, and lack in files of the model without its head. */
  readonly prefix: string;
  /** Tensors that old checkpoints carry and that hold no weight. */
  readonly buffers: readonly RegExp[];
}
