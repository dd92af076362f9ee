import * as z from "zod";
import { parseOptions, positiveInteger } from "@periodic-eval/contracts/options";
import {
  bulkTokenizer,
  type BulkTokenizer,
  type CallOptions,
  type EvaluableModel,
  type LogLikelihood,
  type LogLikelihoodRequest,
  type ModelIdentity,
  type ModelWith,
  type NextToken,
  type NextTokenRequest,
  type Tokenizer,
  type Completion,
  type GenerateRequest,
} from "@periodic-eval/core";
import { yieldToEvents } from "@periodic-eval/core/model";
import {
  fitPairs,
  fitPrompts,
  logLikelihoodOf,
  type FitLimits,
  acceptToken,
  beginWriting,
  completionOf,
  drawToken,
  fitRequests,
  isWritten,
  type Drawn,
  type Writing,
} from "@periodic-eval/tokenizers";
import { namedStream } from "@periodic-eval/core/random";
import { tokenizerOf, type TransformersTokenizer } from "@periodic-eval/tokenizers";
import { modelError } from "../folder/model-error.ts";
import { openEngine, type OnnxEngine, type RowSize } from "./engine.ts";
import {
  factsOf,
  type OnnxFacts,
  type TransformersModel,
  disposeCache,
  type OnnxCache,
} from "./onnx-model.ts";
import { scoreSequences, distribution, hasLogits, logitsAt, padded } from "./scoring.ts";

export interface FromTransformersOptions {
  /** The model's name in snapshots. Default: the source that it was loaded from, else `transformers.js`. */
  readonly name?: string;
  /** Fingerprint of the weights, for snapshots. Default: null, unknown. `openTransformers` computes it. */
  readonly weights?: string | null;
  /** Longest sequence in tokens. Default: that of the model's configuration. */
  readonly contextLength?: number;
  /** Tokens of one pass, including padding. Default 1,024, or fewer if the logits of a batch would take more than 256 MB. */
  readonly maxBatchTokens?: number;
  /**
   * - `"padded"`: rows of similar length are read together.
   * - `"single"`: one row at a time. Default for the dtypes `int8`, `uint8` and `q8`: their activations are quantized per
   *   batch, so that numbers would depend on the other rows.
   */
  readonly batching?: "padded" | "single";
}

const optionsSchema = z.strictObject({
  name: z.string("a string").min(1, "a name").optional(),
  weights: z.string("a string, or null").nullable().optional(),
  contextLength: positiveInteger.optional(),
  maxBatchTokens: positiveInteger.optional(),
  batching: z.enum(["padded", "single"]).optional(),
} satisfies Record<keyof FromTransformersOptions, z.ZodType>);

/** Dtypes whose activations are quantized together, over a whole batch. */
const perBatch = ["int8", "uint8", "q8"];

const where = "fromTransformers";

/** A model of `@huggingface/transformers`, with every ability. */
export type TransformersLM = EvaluableModel &
  ModelWith<"tokenizer" | "logLikelihoods" | "nextToken" | "generate">;

/**
 * Returns a model of `@huggingface/transformers` 4 as a model to measure, on any of its devices and dtypes:
 *
 *     const tokenizer = await AutoTokenizer.from_pretrained(source);
 *     const model = await AutoModelForCausalLM.from_pretrained(source, { dtype: "q4" });
 *     const lm = fromTransformers(tokenizer, model);
 *
 * Log-likelihoods, next-token log-probabilities and completions follow the same definitions as `inMemory`. Sampling is this
 * library's own: completions are reproducible by their seeds, and independent of the generation configuration of the model
 * except for its end-of-text ids. Sequences are padded on the right; rounding may differ with the batch by about 1e-5 nats. Every
 * call disposes the tensors that it creates. The caller disposes the model.
 *
 * Calls throw a `data` error for a prompt (of `generate`) or a continuation that exceeds the context length, a `memory` error
 * for a row of 2 GB of logits if the model has no cache of keys and values, and a `model` error for an id outside of the vocabulary,
 * for NaN logits, and for an error of the engine. A model with a cache reads such a row in pieces.
 *
 * @param tokenizer Its `AutoTokenizer`, or `await loadTokenizer(source)`, which equals transformers for Python in more cases.
 * @param model `await AutoModelForCausalLM.from_pretrained(source)`.
 * @throws PeriodicEvalError `config` for a wrong option, tokenizer or model; `model` for an encoder-decoder model, a model without
 *   logits, or a tokenizer that does not fit the model's vocabulary.
 */
export function fromTransformers(
  tokenizer: Tokenizer | TransformersTokenizer,
  model: TransformersModel,
  options: FromTransformersOptions = {},
): TransformersLM {
  parseOptions(`${where} options`, optionsSchema, options);
  const found = factsOf(where, model);
  const facts = { ...found, contextLength: options.contextLength ?? found.contextLength };
  const ownTokenizer = tokenizerOf(where, tokenizer);
  checkVocabulary(ownTokenizer, facts);
  const stopping: Tokenizer = {
    ...ownTokenizer,
    stopIds: [...new Set([...ownTokenizer.stopIds, ...facts.eosIds])],
  };
  const bulk = bulkTokenizer(stopping);
  const { maxBatchTokens = 1024, batching = perBatch.includes(facts.dtype) ? "single" : "padded" } = options;
  const engine = openEngine(where, model, facts, { maxBatchTokens, batching });
  const source = (model.config as { readonly _name_or_path?: unknown })._name_or_path;
  const identity: ModelIdentity = {
    name: options.name ?? (typeof source === "string" && source !== "" ? source : "transformers.js"),
    engine: `transformers.js-${facts.device}`,
    dtype: facts.dtype,
    weights: options.weights ?? null,
    adapter: null,
    details: { dtype: facts.dtype, device: facts.device, batching },
  };
  return {
    identity,
    contextLength: facts.contextLength,
    // Later tokens of a row change how its earlier ones are quantized.
    toleranceNats: perBatch.includes(facts.dtype) ? Infinity : tolerance(facts.dtype),
    tokenizer: bulk,
    logLikelihoods: (requests, call) => logLikelihoods(engine, bulk, requests, call),
    nextToken: (requests, call) => nextToken(engine, bulk, requests, call),
    async generate(requests, { signal, countTokens }) {
      const { completions, tokens } = await generateAll(engine, stopping, requests, signal);
      countTokens?.(tokens);
      return completions;
    },
    check: ({ signal }) => selfCheck(engine, ownTokenizer.vocabSize, signal),
  };
}

function checkVocabulary({ vocabSize }: Tokenizer, { vocabSize: embedded }: OnnxFacts): void {
  // Embeddings are often padded, by far less than to twice their size.
  if (embedded === null || (vocabSize <= embedded && 2 * vocabSize > embedded)) return;
  throw modelError({
    where,
    got: `a tokenizer of ${vocabSize} tokens for a model with a vocabulary of ${embedded}`,
    expected: "the tokenizer of this model",
    fix: "Load both from the same source.",
  });
}

async function logLikelihoods(
  engine: OnnxEngine,
  tokenizer: BulkTokenizer,
  requests: readonly LogLikelihoodRequest[],
  { signal, countTokens }: CallOptions,
): Promise<readonly LogLikelihood[]> {
  const fitted = await fitPairs(tokenizer, requests, limitsOf(engine), { signal });
  const { scores, tokens } = await scoreSequences(engine, fitted, signal);
  countTokens?.(tokens);
  return requests.map((request, index) => logLikelihoodOf(request, fitted[index]!, scores[index]!));
}

async function nextToken(
  engine: OnnxEngine,
  tokenizer: BulkTokenizer,
  requests: readonly NextTokenRequest[],
  { signal, countTokens }: CallOptions,
): Promise<readonly NextToken[]> {
  const prompts = await fitPrompts(tokenizer, requests, limitsOf(engine), { signal });
  const { scores, tokens } = await scoreSequences(engine, prompts, signal);
  countTokens?.(tokens);
  return prompts.map(({ truncatedTokens }, index) => ({
    nats: scores[index]!.nats,
    entropyNats: scores[index]!.entropyNats[0]!,
    truncatedTokens,
  }));
}

const limitsOf = ({ facts }: OnnxEngine): FitLimits => ({
  window: facts.contextLength ?? Infinity,
  vocabSize: facts.vocabSize ?? Infinity,
});

/** Nats per token. Rounding in float32 changes scores by about 1e-5; padding that is read as tokens by 1e-2 or more. */
const tolerance = (dtype: string): number => (dtype === "fp32" ? 1e-3 : 0.1);

/**
 * Checks that rows read together, with padding, have the scores of rows read alone.
 *
 * @throws PeriodicEvalError `model` if a token's score differs by more than the tolerance; `aborted`.
 */
async function selfCheck(engine: OnnxEngine, vocabSize: number, signal: AbortSignal): Promise<void> {
  if (engine.isSingle) return;
  const random = namedStream("self-check");
  const longest = Math.min(12, engine.facts.contextLength ?? 12);
  const sequences = [longest, Math.max(1, longest - 7)].map((length) => {
    const ids = Array.from({ length }, () => Math.floor(random() * vocabSize));
    return { ids, picks: ids.map((id) => [id]) };
  });
  const together = await scoreSequences(engine, sequences, signal);
  const most = tolerance(engine.facts.dtype);
  for (const [index, sequence] of sequences.entries()) {
    const { scores } = await scoreSequences(engine, [sequence], signal);
    const far = scores[0]!.nats.map((nats, at) => Math.abs(nats - together.scores[index]!.nats[at]!));
    const furthest = Math.max(...far);
    if (furthest <= most) continue;
    throw modelError({
      where: `${where} scoring`,
      got: `scores that padding changes by up to ${furthest.toPrecision(2)} nats per token`,
      expected: `at most ${most}`,
      fix: 'Pass { batching: "single" }: each row is then read alone.',
    });
  }
}

/**
 * Generates completions. Every sequence draws from the random stream that its seed names, so its numbers do not depend on the
 * other sequences of its batch.
 *
 * @returns The completions in the order of the requests, and the tokens that were read and generated, without padding.
 * @throws PeriodicEvalError `config` for a wrong sampling setting; `data` for a prompt longer than the context length; `model`
 *   for NaN logits; `aborted`, checked between tokens.
 */
export async function generateAll(
  engine: OnnxEngine,
  tokenizer: Tokenizer,
  requests: readonly GenerateRequest[],
  signal: AbortSignal,
): Promise<{ readonly completions: readonly Completion[]; readonly tokens: number }> {
  const window = engine.facts.contextLength ?? Infinity;
  const fitted = await fitRequests(bulkTokenizer(tokenizer), requests, window, { signal });
  const writings = fitted.map(beginWriting);
  const write = async (batch: readonly number[]) => {
    const open = [batch.map((index) => writings[index]!)];
    for (let rows = open.pop(); rows !== undefined; rows = open.pop()) {
      const middle = Math.ceil(rows.length / 2);
      // Without a cache, the sequences are read whole and grow.
      if (rows.length > 1 && !engine.fits(rows.map(sizeOf)))
        open.push(rows.slice(middle), rows.slice(0, middle));
      else if (rows.length > 0) open.push(await writeRows(engine, tokenizer, rows, signal));
    }
  };
  await engine.inBatches(writings.map(sizeOf), signal, "generate", write, !engine.facts.padsCache);
  return {
    completions: writings.map((writing) => completionOf(tokenizer, writing)),
    tokens: writings.reduce((sum, { prompt, ids }) => sum + prompt.length + ids.length, 0),
  };
}

const sizeOf = ({ prompt, ids }: Writing): RowSize => {
  const length = prompt.length + ids.length;
  return { length, first: length - 1 };
};

/**
 * Reads sequences whole, then token by token with a cache. Returns the unfinished ones once half of the rows are finished, so
 * that they are read again as a smaller batch, if that fits into memory. A model without a cache reads them whole for every token.
 */
async function writeRows(
  engine: OnnxEngine,
  tokenizer: Tokenizer,
  rows: readonly Writing[],
  signal: AbortSignal,
): Promise<Writing[]> {
  const starts = rows.map(({ prompt, ids }) => [...prompt, ...ids]);
  const width = Math.max(...starts.map(({ length }) => length));
  const mask = starts.map((ids) => [
    ...padded(
      ids.map(() => 1),
      width,
      0,
    ),
  ]);
  let cache: OnnxCache | null = null;
  let pass = {
    ids: starts.map((ids) => padded(ids, width, 0)),
    keep: width + 1 - Math.min(...starts.map(({ length }) => length)),
  };
  /** The position of each row's last token. */
  let last = starts.map(({ length }) => length - 1);
  try {
    for (;;) {
      await yieldToEvents(signal, "generate");
      const past: OnnxCache | null = cache;
      cache = null;
      cache = await engine.read({ ...pass, mask, past, isCached: true }, signal, "generate", (logits) =>
        rows.forEach((writing, row) => {
          if (!isWritten(writing) && hasLogits(logits, last[row]!))
            acceptToken(tokenizer, writing, draw(logitsAt(logits, row, last[row]!), writing));
        }),
      );
      const open = rows.filter((writing) => !isWritten(writing));
      if (open.length === 0 || cache === null) return open;
      if (2 * open.length <= rows.length && engine.fits(open.map(sizeOf))) return open;
      pass = { ids: rows.map(({ ids }) => [ids.at(-1)!]), keep: 1 };
      // A finished sequence reads padding, whose position is always valid.
      rows.forEach((writing, row) => mask[row]!.push(isWritten(writing) ? 0 : 1));
      last = rows.map((_, row) => mask[row]!.length - 1);
    }
  } finally {
    disposeCache(cache);
  }
}

function draw(logits: Float32Array, { sampling, random }: Writing): Drawn {
  // Also throws for NaN.
  const { topId, logSum } = distribution(logits);
  return sampling.temperature === 0 ? { token: topId, nats: -logSum } : drawToken(logits, sampling, random);
}
