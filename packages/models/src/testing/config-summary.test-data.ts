import type { DecoderDescription } from "../decoder/description.ts";
import { ConfigReader, type HuggingFaceConfig } from "../families/config/config-reader.ts";
import { familyOf } from "../families/registry.ts";

/** Layers, head size, and window and rotary base of the first and the last layer, null for none. */
export type Summary = readonly [
  layers: number,
  headDim: number,
  windows: readonly (number | null)[],
  theta: number | null,
];

/** @param notes Receives notes. Default: what would be noted is refused. */
export function summaryOf(config: HuggingFaceConfig, name: string, notes?: string[]): Summary {
  const reader = new ConfigReader(config, name, notes === undefined ? {} : { notes });
  const description = familyOf(config, name).describe(reader);
  const { layers, attention } = description;
  const windows = [layers[0]!, layers.at(-1)!].map(({ window }) => window);
  return [layers.length, attention.headDim, windows, thetaOf(description)];
}

/** The second of n pairs has the frequency θ^(−1/n), because its short wavelength is not stretched. */
function thetaOf({ layers }: DecoderDescription): number | null {
  const frequencies = layers[0]!.rotary?.frequencies;
  return frequencies === undefined ? null : Math.round(frequencies[1]! ** -frequencies.length);
}
