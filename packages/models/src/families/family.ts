import type { DecoderDescription } from "../decoder/description.ts";
import type { WeightNames } from "../decoder/weights.ts";
import type { ConfigReader } from "./config/config-reader.ts";

/** A model family: how to read its configuration, and the names of its weights in a checkpoint. */
export interface Family {
  /** The `model_type` of its configurations. */
  readonly modelType: string;
  /**
   * Describes the decoder that a configuration stands for.
   *
   * @throws PeriodicEvalError `model` for a wrong or unsupported option, with its `path` in `config.json`.
   */
  describe(config: ConfigReader): DecoderDescription;
  readonly names: WeightNames;
  /** Another name of the head, which some checkpoints use. */
  readonly otherHead?: string;
  /** The prefix of every name except the head's; checkpoints of the model without its head omit it. */
  readonly prefix: string;
  /** Matches tensors in old checkpoints that are not weights. */
  readonly buffers: readonly RegExp[];
}
