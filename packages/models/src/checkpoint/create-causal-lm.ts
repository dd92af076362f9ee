import { configError, parseOptions } from "@periodic-eval/contracts/options";
import { namedStream, seedOf } from "@periodic-eval/core/random";
import { requireBackend } from "@periodic-eval/tfjs";
import * as z from "zod";
import type { LiveWeight } from "../decoder/causal-lm.ts";
import { createWeight, sizeOf } from "../decoder/variables.ts";
import { mapWeights, weightSpecs, type WeightSpec } from "../decoder/weights.ts";
import { ConfigReader, type HuggingFaceConfig } from "../families/config/config-reader.ts";
import { familyOf } from "../families/registry.ts";
import { modelError } from "../folder/model-error.ts";
import { fastRandom } from "../ops/fast-random.ts";
import { createModel, dropoutRate, type CheckpointLM } from "./model.ts";

export interface CreateOptions {
  /** Determines the initial weights: the same seed gives the same bits on every backend. */
  readonly seed: string;
  /** Standard deviation of the embedding and the linear maps. Default: the configuration's `initializer_range`, else 0.02. */
  readonly initStd?: number;
  /** Probability in [0, 1) of dropping an addition to the residual stream in training. Default: 0. */
  readonly dropout?: number;
}

const standardDeviation = z
  .number("a finite number of 0 or more")
  .nonnegative("a finite number of 0 or more")
  .meta({ fix: "Omit it to use the configuration's initializer_range." });

const optionsSchema = z.strictObject({
  seed: z.string().meta({ fix: "Pass a string that determines the initial weights." }),
  initStd: standardDeviation.optional(),
  dropout: dropoutRate.default(0),
} satisfies Record<keyof CreateOptions, z.ZodType>);

/**
 * Creates a model with random weights from a Hugging Face configuration, for pretraining. The weights follow transformers'
 * initialization of a Llama: the embedding and linear maps are drawn from a normal distribution, norms scale by 1, and
 * biases and the embedding of the padding token are 0. The backend must be set. The caller disposes the model.
 *
 * @throws PeriodicEvalError `config` for a wrong option or without a backend, `model` for a configuration that is not supported.
 */
export function createCausalLM(config: HuggingFaceConfig, options: CreateOptions): CheckpointLM {
  const { seed, dropout, ...parsed } = parseOptions("createCausalLM options", optionsSchema, options);
  requireBackend("createCausalLM");
  const initStd = parsed.initStd ?? initializerRange(config);
  const where = "createCausalLM, config";
  const family = familyOf(config, where);
  const description = family.describe(new ConfigReader(config, where));
  const specs = weightSpecs(description, family.names);
  checkSize(specs, where);
  const created: LiveWeight[] = [];
  try {
    const weights = mapWeights(specs, (spec) => {
      const values = initialValues(spec, initStd, seed);
      const { paddingRow } = description.embedding;
      if (spec === specs.embedding && paddingRow !== null) {
        const { hiddenSize } = description;
        values.fill(0, paddingRow * hiddenSize, (paddingRow + 1) * hiddenSize);
      }
      const weight = createWeight(spec, values);
      created.push(weight);
      return weight;
    });
    return createModel({ config, folder: null, description, weights, otherParts: [], dropout });
  } catch (error) {
    for (const { variable } of created) variable.dispose();
    throw error;
  }
}

/** A model of 16 GiB, more than a backend of this process can train. */
const mostWeights = 2 ** 32;

function checkSize(specs: ReturnType<typeof weightSpecs>, where: string): void {
  let weights = 0;
  mapWeights(specs, (spec) => (weights += sizeOf(spec)));
  if (weights <= mostWeights) return;
  throw modelError({
    where,
    got: `${weights} weights`,
    expected: `at most ${mostWeights}`,
    fix: "Choose a smaller hidden_size, intermediate_size, vocab_size or num_hidden_layers.",
  });
}

function initializerRange(config: HuggingFaceConfig): number {
  const value = config["initializer_range"] ?? 0.02;
  if (typeof value === "number" && value >= 0 && value < Infinity) return value;
  throw configError({
    where: "createCausalLM config",
    path: ["initializer_range"],
    value,
    expected: "a finite number of 0 or more",
    fix: "Correct the configuration, or pass initStd.",
  });
}

function initialValues(spec: WeightSpec, std: number, seed: string): Float32Array {
  const { name, initial } = spec;
  const values = new Float32Array(sizeOf(spec));
  if (initial !== "normal") return values.fill(initial);
  const random = fastRandom(namedStream(seedOf(seed, name)));
  // Box and Muller 1958; 1 − u keeps the logarithm finite.
  return values.map(() => std * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));
}
