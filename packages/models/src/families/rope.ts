import type { ConfigReader } from "./config.ts";

/**
 * The rotary frequencies of a configuration, in either layout: `rope_parameters` (transformers 5) or `rope_theta` beside
 * `rope_scaling` (transformers 4). Radians per position, [headDim / 2].
 *
 * Follows transformers 5.23 `modeling_rope_utils.py`: `default`, `linear`, `llama3`. Others throw.
 */
export function rotaryFrequencies(
  config: ConfigReader,
  headDim: number,
  defaultTheta: number,
): readonly number[] {
  const oldTheta = config.get("rope_theta");
  const parameters = config.nested("rope_parameters") ?? config.nested("rope_scaling");
  if (parameters === null)
    return plainFrequencies(config.positiveNumber("rope_theta", defaultTheta), headDim);
  const theta = parameters.positiveNumber("rope_theta", (oldTheta as number | null) ?? defaultTheta);
  if (oldTheta !== null && oldTheta !== theta)
    throw config.wrong("rope_theta", `${theta}, as in rope_parameters`);
  parameters.only("partial_rotary_factor", 1);
  const kind = parameters.oneOf("rope_type", kinds, parameters.oneOf("type", kinds, "default"));
  const frequencies = plainFrequencies(theta, headDim);
  const scaled = scalings[kind](frequencies, parameters);
  parameters.finish();
  return scaled;
}

const kinds = ["default", "linear", "llama3"] as const;

const scalings: Readonly<
  Record<(typeof kinds)[number], (base: number[], parameters: ConfigReader) => number[]>
> = {
  default: (base) => base,
  linear: (base, parameters) => {
    const factor = parameters.positiveNumber("factor");
    return base.map((frequency) => frequency / factor);
  },
  llama3: llama3Frequencies,
};

function plainFrequencies(theta: number, headDim: number): number[] {
  return Array.from({ length: headDim / 2 }, (_, i) => theta ** ((-2 * i) / headDim));
}

/** Long wavelengths are stretched by `factor`, short ones kept, those between blended (Llama 3.1). */
function llama3Frequencies(base: number[], parameters: ConfigReader): number[] {
  const factor = parameters.positiveNumber("factor");
  const low = parameters.positiveNumber("low_freq_factor");
  const high = parameters.positiveNumber("high_freq_factor");
  const oldContext = parameters.positiveInteger("original_max_position_embeddings");
  if (high <= low) throw parameters.wrong("high_freq_factor", `more than low_freq_factor, ${low}`);
  return base.map((frequency) => {
    const wavelength = (2 * Math.PI) / frequency;
    if (wavelength < oldContext / high) return frequency;
    if (wavelength > oldContext / low) return frequency / factor;
    const smooth = (oldContext / wavelength - low) / (high - low);
    return ((1 - smooth) * frequency) / factor + smooth * frequency;
  });
}
