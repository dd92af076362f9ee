import { PeriodicEvalError } from "@periodic-eval/core";
import { namedStream, seedOf } from "@periodic-eval/core/random";
import { checkKeys, quoteValue } from "@periodic-eval/core/internal";
import type { LiveWeight } from "../decoder/causal-lm.ts";
import { createWeight, sizeOf } from "../decoder/variables.ts";
import { mapWeights, weightSpecs, type WeightSpec } from "../decoder/weights.ts";
import { ConfigReader, type HuggingFaceConfig } from "../families/config/config-reader.ts";
import { familyOf } from "../families/registry.ts";
import { fastRandom } from "../ops/fast-random.ts";
import { checkDropout, createModel, type CheckpointLM } from "./model.ts";

export interface CreateOptions {
  /** Names the initial weights: the same seed gives the same bits on every engine. */
  readonly seed: string;
  /** Standard deviation of the embedding and of the linear maps; the configuration's `initializer_range`, or 0.02. */
  readonly initStd?: number;
  /** Probability in [0, 1) of dropping what enters the residual stream, in training; 0 by default. */
  readonly dropout?: number;
}

const known = { seed: true, initStd: true, dropout: true } as const satisfies Record<
  keyof CreateOptions,
  true
>;

/**
 * A model of random weights from a Hugging Face configuration, for pretraining: normal embeddings and linear maps,
 * norms that only norm, biases and the embedding of padding of 0, as transformers initializes a Llama. The backend must be set. The caller disposes the model.
 *
 * @throws PeriodicEvalError `config` for a wrong option, `model` for a configuration that is not supported.
 */
export function createCausalLM(config: HuggingFaceConfig, options: CreateOptions): CheckpointLM {
  checkKeys("createCausalLM", options, Object.keys(known));
  const { seed, initStd = Number(config["initializer_range"] ?? 0.02), dropout = 0 } = options;
  checkDropout(dropout);
  if (typeof seed !== "string") throw wrong("seed", seed, "a text", "Name the initial weights.");
  if (!(Number.isFinite(initStd) && initStd >= 0))
    throw wrong("initStd", initStd, "a finite number of 0 or more", "Leave it out for the configuration's.");
  const where = "createCausalLM, config";
  const family = familyOf(config, where);
  const description = family.describe(new ConfigReader(config, where));
  const specs = weightSpecs(description, family.names);
  const made: LiveWeight[] = [];
  try {
    const weights = mapWeights(specs, (spec) => {
      const values = initialValues(spec, initStd, seed);
      const { paddingRow } = description.embedding;
      if (spec === specs.embedding && paddingRow !== null) {
        const { hiddenSize } = description;
        values.fill(0, paddingRow * hiddenSize, (paddingRow + 1) * hiddenSize);
      }
      const weight = createWeight(spec, values);
      made.push(weight);
      return weight;
    });
    return createModel({ config, folder: null, description, weights, dropout });
  } catch (error) {
    for (const { variable } of made) variable.dispose();
    throw error;
  }
}

function initialValues(spec: WeightSpec, std: number, seed: string): Float32Array {
  const { name, initial } = spec;
  const values = new Float32Array(sizeOf(spec));
  if (initial !== "normal") return values.fill(initial);
  const random = fastRandom(namedStream(seedOf(seed, name)));
  // Box and Muller 1958; 1 − u keeps the logarithm finite.
  return values.map(() => std * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));
}

function wrong(option: string, got: unknown, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "config",
    where: `createCausalLM ${option}`,
    got: quoteValue(got),
    expected,
    fix,
  });
}
