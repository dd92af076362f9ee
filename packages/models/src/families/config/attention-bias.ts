import type { ConfigReader } from "./config-reader.ts";

/** Reads `attention_bias`, which adds biases to queries, keys, values and the output of attention. */
export function attentionBias(config: ConfigReader, fallback = false) {
  const bias = config.boolean("attention_bias", fallback);
  return { queryKeyValue: bias, output: bias };
}
