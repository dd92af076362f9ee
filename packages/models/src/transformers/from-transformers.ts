import * as z from "zod";
import { parseOptions, positiveInteger } from "@periodic-eval/contracts/options";
import {
  bulkTokenizer,
  type CallOptions,
  type EvaluableModel,
  type ModelIdentity,
  type ModelWith,
  type Tokenizer,
  type Completion,
  type GenerateRequest,
} from "@periodic-eval/core";
import {
  beginWriting,
  completionOf,
  drawToken,
  fitRequests,
  furthest,
  isWritten,
  scorePairs,
  scorePrompts,
  writeAll,
  type ScoredSequence,
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
  const modelFacts = factsOf(where, model);
  const facts = { ...modelFacts, contextLength: options.contextLength ?? modelFacts.contextLength };
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
  const limits = { window: facts.contextLength ?? Infinity, vocabSize: facts.vocabSize ?? Infinity };
  const score = async (sequences: readonly ScoredSequence[], { signal, countTokens }: CallOptions) => {
    const { scores, tokens } = await scoreSequences(engine, sequences, signal);
    countTokens?.(tokens);
    return scores;
  };
  return {
    identity,
    contextLength: facts.contextLength,
    // Later tokens of a row change how its earlier ones are quantized.
    toleranceNats: perBatch.includes(facts.dtype) ? Infinity : tolerance(facts.dtype),
    tokenizer: bulk,
    logLikelihoods: (requests, call) =>
      scorePairs(bulk, requests, limits, call, (sequences) => score(sequences, call)),
    nextToken: (requests, call) =>
      scorePrompts(bulk, requests, limits, call, async (sequences) =>
        (await score(sequences, call)).map(({ nats, entropyNats }) => ({
          nats,
          entropyNats: entropyNats[0]!,
        })),
      ),
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
  const alone: (typeof together.scores)[number][] = [];
  for (const sequence of sequences) alone.push(...(await scoreSequences(engine, [sequence], signal)).scores);
  const far = furthest(together.scores, alone);
  if (far <= most) return;
  throw modelError({
    where: `${where} scoring`,
    got: `scores that padding changes by up to ${far.toPrecision(2)} nats per token`,
    expected: `at most ${most}`,
    fix: 'Pass { batching: "single" }: each row is then read alone.',
  });
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
    const reader = nextTokens(engine, signal);
    const rows = batch.map((index) => writings[index]!);
    await writeAll(tokenizer, rows, signal, reader.next).finally(reader.dispose);
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
 * Reads sequences whole, then token by token with a cache. Once half of the rows have ended it reads the others again as a smaller
 * batch, if that fits into memory. A model without a cache reads them whole for every token.
 */
function nextTokens(engine: OnnxEngine, signal: AbortSignal) {
  let cache: OnnxCache | null = null;
  let read: readonly Writing[] = [];
  let mask: number[][] = [];
  const next = async (rows: readonly Writing[]): Promise<readonly Drawn[]> => {
    const fits = engine.fits(rows.map(sizeOf));
    const isNew = cache === null || (2 * rows.length <= read.length && fits);
    if (cache === null && rows.length > 1 && !fits) {
      const middle = Math.ceil(rows.length / 2);
      return [...(await next(rows.slice(0, middle))), ...(await next(rows.slice(middle)))];
    }
    if (isNew) {
      disposeCache(cache);
      cache = null;
      read = rows;
    }
    const starts = read.map(({ prompt, ids }) => (isNew ? [...prompt, ...ids] : [ids.at(-1)!]));
    const width = Math.max(...starts.map(({ length }) => length));
    const ones = starts.map((ids) => padded(Array<number>(ids.length).fill(1), width, 0));
    // A finished sequence reads padding, whose position is always valid.
    mask = isNew ? ones : read.map((writing, row) => [...mask[row]!, isWritten(writing) ? 0 : 1]);
    const last = isNew ? starts.map(({ length }) => length - 1) : mask.map(({ length }) => length - 1);
    const past = cache;
    cache = null;
    const drawn = new Map<Writing, Drawn>();
    const pass = {
      ids: starts.map((ids) => padded(ids, width, 0)),
      mask,
      past,
      keep: width + 1 - Math.min(...starts.map(({ length }) => length)),
      isCached: true,
    };
    cache = await engine.read(pass, signal, "generate", (logits) =>
      read.forEach((writing, row) => {
        if (!isWritten(writing) && hasLogits(logits, last[row]!))
          drawn.set(writing, draw(logitsAt(logits, row, last[row]!), writing));
      }),
    );
    return rows.map((writing) => drawn.get(writing)!);
  };
  return { next, dispose: () => disposeCache(cache) };
}

function draw(logits: Float32Array, { sampling, random }: Writing): Drawn {
  // Also throws for NaN.
  const { topId, logSum } = distribution(logits);
  return sampling.temperature === 0 ? { token: topId, nats: -logSum } : drawToken(logits, sampling, random);
}
