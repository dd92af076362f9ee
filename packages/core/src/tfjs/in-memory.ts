import * as tf from "@tensorflow/tfjs-core";
import { checkKeys } from "../internal/check-keys.ts";
import { checkWord } from "../internal/check-word.ts";
import { PeriodicEvalError } from "../errors.ts";
import type { EvaluableModel, ModelIdentity, Tokenizer, ModelWith } from "../contracts/model.ts";
import type { ForwardLimits } from "./batches.ts";
import type { CausalLM } from "./causal-lm.ts";
import { windowLength } from "./forward.ts";
import { generate } from "./generate.ts";
import { logLikelihoods, nextToken } from "./scoring.ts";
import { selfCheck } from "./self-check.ts";

export interface InMemoryOptions {
  /** Names the model in snapshots; default its own name, else `in-memory`. */
  readonly name?: string;
  /**
   * Tokens of one forward pass, padding included; default 1,024. Generation keeps keys and values of as many tokens as
   * 512 MiB hold, or this many where it is more.
   */
  readonly maxBatchTokens?: number;
  /**
   * `"packed"` (the default, where the model reads incrementally): what questions and choices share is read once.
   * `"plain"`: one row a choice.
   */
  readonly scoring?: "packed" | "plain";
}

/** More outgrow a processor's cache: see docs/decisions/2026-11-21-graphs.md. */
const defaultBatchTokens = 1024;

/** 64 MB as float32; scoring holds about three such matrices at once. */
const maxLogits = 2 ** 24;

/**
 * The live model as something to measure: no copy, no reload. Scores are of the weights at the moment of the call, in
 * evaluation mode (`enterEval`), computed where the weights are; only scores are downloaded. Every call leaves
 * `tf.memory().numTensors` as it found it. Results do not depend on the order of requests; the batch they are computed
 * in can move them by rounding (1e-6 nats).
 *
 * @throws PeriodicEvalError `config` for an unknown option, or a `maxBatchTokens` that is no positive integer.
 */
export function inMemory(
  lm: CausalLM,
  tokenizer: Tokenizer,
  options: InMemoryOptions = {},
): EvaluableModel & ModelWith<"tokenizer" | "logLikelihoods" | "nextToken" | "generate"> {
  checkKeys("inMemory options", options, ["name", "maxBatchTokens", "scoring"]);
  const { name = lm.name ?? "in-memory", maxBatchTokens = defaultBatchTokens, scoring = "packed" } = options;
  checkWord("inMemory scoring", scoring, ["packed", "plain"]);
  if (!Number.isInteger(maxBatchTokens) || maxBatchTokens < 1) {
    throw new PeriodicEvalError({
      code: "config",
      where: "inMemory maxBatchTokens",
      got: String(maxBatchTokens),
      expected: "a positive integer",
      fix: `Leave it out for ${defaultBatchTokens}.`,
    });
  }
  const limits: ForwardLimits = { maxBatchTokens, maxLogits, scoring };
  const base = lm.base && inMemory(lm.base, tokenizer, options);
  return {
    // Read when asked: the backend may be chosen after this call.
    get identity() {
      return identity(name, lm.adapter ?? (lm.base ? "live" : null));
    },
    contextLength: windowLength(lm),
    tokenizer,
    logLikelihoods: (requests, call) => logLikelihoods(lm, tokenizer, requests, call, limits),
    nextToken: (requests, call) => nextToken(lm, tokenizer, requests, call, limits),
    check: ({ signal }) => selfCheck(lm, limits, signal),
    generate: (requests, call) => generate(lm, tokenizer, requests, call, limits),
    ...(base && { base }),
  };
}

function identity(name: string, adapter: string | null): ModelIdentity {
  return {
    name,
    engine: `tfjs-${tf.getBackend()}`,
    dtype: "float32",
    // Live weights change under us: the guard named `weights` gives their fingerprint.
    weights: null,
    adapter,
    details: { tfjs: tf.version_core },
  };
}
