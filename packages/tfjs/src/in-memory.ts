import * as tf from "@tensorflow/tfjs-core";
import * as z from "zod";
import {
  bulkTokenizer,
  type CallOptions,
  type HiddenStatesRequest,
  type EvaluableModel,
  type ModelIdentity,
  type ModelWith,
  type Tokenizer,
  PeriodicEvalError,
} from "@periodic-eval/core";
import { parseOptions, positiveInteger, configError } from "@periodic-eval/contracts/options";
import { tokenizerOf, type TransformersTokenizer } from "@periodic-eval/tokenizers";
import type { ForwardLimits } from "./batching/batches.ts";
import type { CausalLM } from "./causal-lm/causal-lm.ts";
import { windowLength } from "./causal-lm/forward.ts";
import { compiledKernels, measuringAdvice, memoryErrorOf } from "./batching/engine-memory.ts";
import { generate } from "./generation/generate.ts";
import { hiddenStates } from "./scoring/hidden-states.ts";
import { logLikelihoods, nextToken, selfCheck } from "./scoring/scoring.ts";

export interface InMemoryOptions {
  /** The model's name in snapshots. Default: `lm.name`, else `in-memory`. */
  readonly name?: string;
  /**
   * Tokens of one forward pass, including padding. Default: 1,024. Generation caches the keys and values of as many tokens as
   * fit into 512 MiB (1.5 GiB with the kernels that `periodic-eval native` compiles), or of this many if that is more.
   */
  readonly maxBatchTokens?: number;
}

/** A model in memory, with every ability. */
export type InMemoryModel = EvaluableModel &
  ModelWith<"tokenizer" | "logLikelihoods" | "nextToken" | "generate">;

/** More tokens exceed a processor's cache: see docs/decisions/native-tensorflow.md. */
const defaultBatchTokens = 1024;

/** Numbers in one matrix of logits: 64 MB as float32. Scoring holds about three such matrices at once. */
const maxLogits = 2 ** 24;

const optionsSchema = z.strictObject({
  name: z.string().optional(),
  maxBatchTokens: positiveInteger.meta({ fix: `Omit it for ${defaultBatchTokens}.` }).optional(),
} satisfies Record<keyof InMemoryOptions, z.ZodType>);

/**
 * Returns the live model as a model to measure, without a copy. Calls use the weights at that moment, in evaluation mode
 * (`enterEval`), on the device of the weights; only scores are downloaded. Every call disposes all tensors that it creates.
 * Results do not depend on the order of requests; rounding may differ with the batch by about 1e-6 nats.
 *
 * A backend that runs out of memory during a call becomes a PeriodicEvalError `memory`.
 *
 * @param tokenizer `await loadTokenizer(folder)`, `charTokenizer(chars)`, or an `AutoTokenizer` of `@huggingface/transformers`.
 * @throws PeriodicEvalError `config` for a wrong option or tokenizer.
 */
export function inMemory(lm: CausalLM, tokenizer: Tokenizer, options?: InMemoryOptions): InMemoryModel;
export function inMemory(
  lm: CausalLM,
  tokenizer: TransformersTokenizer,
  options?: InMemoryOptions,
): InMemoryModel;
export function inMemory(
  lm: CausalLM,
  tokenizer: Tokenizer | TransformersTokenizer,
  options: InMemoryOptions = {},
): InMemoryModel {
  parseOptions("inMemory options", optionsSchema, options);
  return measuredInMemory(lm, tokenizerOf("inMemory", tokenizer), options);
}

function measuredInMemory(lm: CausalLM, tokenizer: Tokenizer, options: InMemoryOptions): InMemoryModel {
  const { name = lm.name ?? "in-memory", maxBatchTokens = defaultBatchTokens } = options;
  const limits: ForwardLimits = { maxBatchTokens, maxLogits };
  const bulk = bulkTokenizer(tokenizer);
  const base = lm.base && measuredInMemory(lm.base, tokenizer, options);
  const checked = async <T>(doing: string, run: () => Promise<T>): Promise<T> => {
    requireBackend("inMemory");
    try {
      return await run();
    } catch (error) {
      // Batches have translated the error of a single row, without the advice.
      const isRow = PeriodicEvalError.is(error, "memory");
      const what = `a measurement that ${doing}${isRow ? ` (${error.where})` : ""}`;
      throw memoryErrorOf(isRow ? error.cause : error, what, measuringAdvice);
    }
  };
  return {
    // A getter, because the backend may be set after this call.
    get identity() {
      return identity(name, lm.adapter ?? (lm.base ? "live" : null));
    },
    contextLength: windowLength(lm),
    ...(lm.layerCount !== undefined && { layerCount: lm.layerCount }),
    tokenizer: bulk,
    logLikelihoods: (requests, call) =>
      checked("scores continuations", () => logLikelihoods(lm, bulk, requests, call, limits)),
    nextToken: (requests, call) =>
      checked("scores next tokens", () => nextToken(lm, bulk, requests, call, limits)),
    check: ({ signal }) => checked("checks the backend", () => selfCheck(lm, limits, signal)),
    generate: (requests, call) => checked("generates", () => generate(lm, tokenizer, requests, call, limits)),
    ...(lm.hiddenStates && {
      hiddenStates: (requests: readonly HiddenStatesRequest[], call: CallOptions) =>
        checked("reads hidden states", () => hiddenStates(lm, bulk, requests, call, limits)),
    }),
    ...(base && { base }),
  };
}

/**
 * The version of the numbers that the compiled kernels of `@periodic-eval/kernels` give. Raise it when a change of
 * `packages/kernels/src/native`, or of the batches that these kernels read, rounds differently: a snapshot then shows what
 * measured it, and a session that resumes with other kernels measures again.
 *
 * @internal
 */
export const kernelsVersion = 4;

function identity(name: string, adapter: string | null): ModelIdentity {
  const kernels = compiledKernels();
  return {
    name,
    engine: `tfjs-${tf.getBackend()}`,
    dtype: "float32",
    // Live weights change; the guard `weights` reports their fingerprint.
    weights: null,
    adapter,
    details: { tfjs: tf.version_core, ...(kernels && { kernels: kernelsVersion, lanes: kernels.lanes }) },
  };
}

/**
 * Checks that TensorFlow.js has a backend. Without one it throws "No backend found in registry." at the first tensor.
 *
 * @param where The function that needs the backend, for the error.
 * @throws PeriodicEvalError `config` if no backend is registered.
 */
export function requireBackend(where: string): void {
  if (tf.engine().backendNames().length > 0) return;
  throw configError({
    where,
    got: "TensorFlow.js without a backend",
    expected: "a backend before the first tensor",
    fix: "Call `await useBackend()` of @periodic-eval/models first, or import a backend: `@tensorflow/tfjs-backend-cpu`.",
  });
}
