import type { HuggingFaceConfig } from "../families/config.ts";
import { failure } from "../folder/failure.ts";
import type { CheckpointTensors } from "./tensors.ts";

const layerKeys = ["num_hidden_layers", "n_layer"];
const sizeKeys = [
  "vocab_size",
  "hidden_size",
  "intermediate_size",
  "head_dim",
  "num_attention_heads",
  "num_key_value_heads",
  "n_embd",
  "n_inner",
  "n_head",
];
/** Below this a size costs nothing, and its family says better what is wrong with it. */
const harmless = 1 << 16;

/**
 * Refuses a configuration whose sizes are beyond all that the weights hold, before anything is made in these sizes: a
 * number in a text file could ask for all memory.
 */
export function checkSizes(config: HuggingFaceConfig, where: string, { tensors }: CheckpointTensors): void {
  const largest = [...tensors.values()].flatMap(({ shape }) => shape).reduce((a, b) => Math.max(a, b), 0);
  check(layerKeys, tensors.size, "the number of its tensors");
  check(sizeKeys, largest, "the largest size of its tensors");

  function check(keys: readonly string[], most: number, what: string): void {
    for (const key of keys) {
      const size = config[key];
      if (typeof size !== "number" || size <= Math.max(most, harmless)) continue;
      const fix = "Check that config.json and the weights are of the same model.";
      throw failure(`${where}, ${key}`, String(size), `at most ${most}, ${what}`, fix);
    }
  }
}
