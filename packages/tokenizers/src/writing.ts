import {
  type BulkOptions,
  type BulkTokenizer,
  type Completion,
  type GenerateRequest,
  type Sampling,
  type Tokenizer,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { parseOptions, samplingSchema } from "@periodic-eval/contracts/options";
import { renderPrompts, yieldToEvents } from "@periodic-eval/core/model";
import { namedStream } from "@periodic-eval/core/random";

/** A request for a completion that fits the model's context length. */
export interface FittedRequest {
  readonly prompt: readonly number[];
  readonly sampling: Sampling;
  /** Most tokens to generate, by `maxNewTokens` and the context length. */
  readonly room: number;
}

/** A completion that is being generated. */
export interface Writing extends FittedRequest {
  readonly random: () => number;
  readonly ids: number[];
  readonly nats: number[];
  /** The reason why the sequence ended; null while it continues. */
  stopped: Stopped | null;
}

type Stopped = { readonly by: "stop id" } | { readonly by: "stop string"; readonly text: string };

/**
 * Encodes requests for a model with a context length of `window` tokens.
 *
 * @throws PeriodicEvalError `config` for a wrong sampling setting; `data` for a prompt longer than the context length, because a
 *   completion cannot report what was cut.
 */
export async function fitRequests(
  tokenizer: BulkTokenizer,
  requests: readonly GenerateRequest[],
  window: number,
  options: BulkOptions = {},
): Promise<readonly FittedRequest[]> {
  for (const { sampling } of requests) parseOptions("sampling", samplingSchema, sampling);
  const prompts = requests.map(({ prompt }) => prompt);
  const rendered = await renderPrompts(tokenizer, prompts, options);
  return requests.map(({ sampling }, at) => {
    const { ids } = rendered[at]!;
    if (ids.length > window)
      throw new PeriodicEvalError({
        code: "data",
        where: "generate",
        got: `a prompt of ${ids.length} tokens`,
        expected: `at most ${window} tokens, the model's context length`,
        fix: "Shorten the prompt, or use a model with a longer context.",
      });
    // The last token is drawn but never read.
    return { prompt: ids, sampling, room: Math.min(sampling.maxNewTokens, window + 1 - ids.length) };
  });
}

/** Begins a completion at the start of the random stream that its seed names. */
export const beginWriting = (request: FittedRequest): Writing => ({
  ...request,
  random: namedStream(request.sampling.seed),
  ids: [],
  nats: [],
  stopped: null,
});

/** Whether a completion has ended. */
export const isWritten = ({ stopped, ids, room }: Writing): boolean => stopped !== null || ids.length >= room;

/** Adds a drawn token, and ends the completion at a stop id or a stop string. */
export function acceptToken(tokenizer: Tokenizer, writing: Writing, { token, nats }: Drawn): void {
  writing.ids.push(token);
  writing.nats.push(nats);
  if (tokenizer.stopIds.includes(token)) {
    writing.stopped = { by: "stop id" };
    return;
  }
  const { stop = [] } = writing.sampling;
  if (stop.length === 0) return;
  const text = tokenizer.decode(writing.ids, { specialTokens: false });
  const at = firstOf(stop, text);
  if (at < Infinity) writing.stopped = { by: "stop string", text: text.slice(0, at) };
  else stopAtSpecial(tokenizer, writing, stop);
}

/**
 * Generates completions together, until each has ended.
 *
 * @param next Draws the next token of each row. Rows that ended are missing; the others keep their order.
 * @throws PeriodicEvalError `aborted`, checked between tokens.
 */
export async function writeAll(
  tokenizer: Tokenizer,
  rows: readonly Writing[],
  signal: AbortSignal,
  next: (rows: readonly Writing[]) => Promise<readonly Drawn[]>,
): Promise<void> {
  for (let open = rows; open.length > 0; open = open.filter((writing) => !isWritten(writing))) {
    await yieldToEvents(signal, "generate", open.length);
    const drawn = await next(open);
    open.forEach((writing, row) => acceptToken(tokenizer, writing, drawn[row]!));
  }
}

const firstOf = (strings: readonly string[], text: string): number =>
  Math.min(...strings.map((string) => text.indexOf(string)).filter((index) => index >= 0));

/** Stops at a stop string that contains special tokens, which only text decoded with special tokens shows. */
function stopAtSpecial(tokenizer: Tokenizer, writing: Writing, stop: readonly string[]): void {
  const { ids } = writing;
  const shown = (count: number) => tokenizer.decode(ids.slice(0, count));
  const text = shown(ids.length);
  const at = firstOf(stop, text);
  if (at === Infinity) return;
  let before = ids.length;
  while (before > 0 && shown(before).length > at) before--;
  const whole = before === 0 ? "" : tokenizer.decode(ids.slice(0, before), { specialTokens: false });
  const rest = text.slice(before === 0 ? 0 : shown(before).length, at);
  writing.stopped = { by: "stop string", text: whole + rest };
}

/** Returns the completion of a sequence that ended. */
export function completionOf(tokenizer: Tokenizer, { ids, nats, stopped }: Writing): Completion {
  const written = stopped?.by === "stop id" ? ids.slice(0, -1) : ids;
  return {
    // Some tokenizers throw for an empty array.
    text:
      stopped?.by === "stop string"
        ? stopped.text
        : written.length === 0
          ? ""
          : tokenizer.decode(written, { specialTokens: false }),
    ids,
    tokenNats: nats,
    finish: stopped ? "stop" : "length",
  };
}

export interface Drawn {
  readonly token: number;
  /** log p of the token in the model's distribution, before temperature, top-k and top-p. */
  readonly nats: number;
}

/**
 * Draws one token in double precision on the host: applies temperature, then top-k, then top-p, in the order of Hugging Face's
 * logits processors. Ties are ordered by id. Always takes exactly one number from `random`.
 *
 * @param logits Logits of one position, [V].
 * @param random Returns numbers in [0, 1).
 */
export function drawToken(logits: Float32Array, sampling: Sampling, random: () => number): Drawn {
  const { top, weights, total, partition } = weighed(logits, sampling.temperature);
  const pool = restrict(weights, total, sampling);
  const token = pool === null ? drawn(weights, random()) : idAt(drawn(pool, random()), pool, weights);
  return { token, nats: logits[token]! - top - Math.log(partition) };
}

/**
 * Returns exp((logit − top) / T) of each token, their sum, and the sum at T = 1. Plain loops here and below, because they run over
 * the vocabulary for every drawn token.
 */
function weighed(logits: Float32Array, temperature: number) {
  let top = -Infinity;
  for (let id = 0; id < logits.length; id++) if (logits[id]! > top) top = logits[id]!;
  const weights = reused("weights", logits.length);
  const partition = setWeights(weights, logits, top, 1);
  const total = temperature === 1 ? partition : setWeights(weights, logits, top, temperature);
  return { top, weights, partition, total };
}

/** Memory that every draw overwrites: allocating it takes a tenth of a draw. */
const memory = { weights: new Float64Array(0), sorted: new Float64Array(0) };

function reused(name: keyof typeof memory, length: number): Float64Array {
  if (memory[name].length !== length) memory[name] = new Float64Array(length);
  return memory[name];
}

function setWeights(weights: Float64Array, logits: Float32Array, top: number, temperature: number): number {
  let sum = 0;
  for (let id = 0; id < logits.length; id++) {
    const weight = exponential((logits[id]! - top) / temperature);
    weights[id] = weight;
    sum += weight;
  }
  return sum;
}

/** Returns the index at which the cumulated weight passes `share` of the total. */
function drawn(weights: Float64Array, share: number): number {
  let mass = 0;
  for (let at = 0; at < weights.length; at++) mass += weights[at]!;
  const goal = share * mass;
  let reached = 0;
  // If rounding leaves `reached` below `goal` at the end, the last one with a weight is drawn.
  let last = 0;
  for (let at = 0; at < weights.length; at++) {
    if (weights[at]! > 0) last = at;
    reached += weights[at]!;
    if (reached > goal) return at;
  }
  return last;
}

/** Returns the weights that top-k and top-p keep, largest first; null if neither is set. */
function restrict(weights: Float64Array, total: number, { topK, topP = 1 }: Sampling): Float64Array | null {
  const hasTopK = topK !== undefined && topK < weights.length;
  if (!hasTopK) return topP === 1 ? null : largest(weights, total, topP * total, weights.length);
  const pool = largest(weights, total, Infinity, topK);
  return topP === 1 ? pool : pool.subarray(0, countTo(topP * pool.reduce((a, b) => a + b, 0), pool));
}

/**
 * Returns the largest weights, largest first: `count`, or fewer if they reach a mass. Sorts them in bands, because few are needed of
 * a large vocabulary. The kernel for native TensorFlow (draws.h) has the same bands.
 */
function largest(weights: Float64Array, total: number, mass: number, count: number): Float64Array {
  const sorted = reused("sorted", weights.length);
  let size = 0;
  let [floor, above] = [total / 256, Infinity];
  for (;;) {
    const before = size;
    for (let id = 0; id < weights.length; id++) {
      const weight = weights[id]!;
      if (weight >= floor && weight < above) sorted[size++] = weight;
    }
    sorted.subarray(before, size).sort().reverse();
    const enough = Math.min(countTo(mass, sorted.subarray(0, size)), count);
    if (enough < size || floor === 0) return sorted.subarray(0, enough);
    [floor, above] = [floor > smallestBandShare * total ? floor / 8 : 0, floor];
  }
}

/** Below this share of the total, weights are not worth a separate band. */
const smallestBandShare = 1e-12;

/** Returns how many weights are needed to reach a mass. All, if they do not. */
function countTo(mass: number, weights: Float64Array): number {
  let reached = 0;
  for (let at = 0; at < weights.length; at++) {
    reached += weights[at]!;
    if (reached >= mass) return at + 1;
  }
  return weights.length;
}

/** Returns the id of a weight of the pool. Equal weights are kept in the order of their ids. */
function idAt(at: number, pool: Float64Array, weights: Float64Array): number {
  let id = weights.indexOf(pool[at]!);
  for (let equal = at - pool.indexOf(pool[at]!); equal > 0; equal--) id = weights.indexOf(pool[at]!, id + 1);
  return id;
}

/** 2ᵏ at index k + 1074. */
const powers = Float64Array.from({ length: 1075 }, (_, index) => 2 ** (index - 1074));

/**
 * Returns exp(x) for x ≤ 0. From −708 on the bits are those of `Math.exp` of V8: the algorithm of fdlibm (Sun Microsystems 1993),
 * without the cost of a call. Loops over the vocabulary need it for every drawn token. Below −708 it returns 0, because the threads of
 * native kernels replace denormal numbers by zero, which begin at −708.4.
 */
export function exponential(x: number): number {
  // Other numbers are rare, and have branches of their own.
  if (!(x < -1.0397 && x > -700)) return x < -708 ? 0 : Math.exp(x);
  const k = Math.trunc(1.4426950408889634 * x - 0.5);
  const high = x - k * 0.6931471803691238;
  const low = k * 1.9082149292705877e-10;
  const r = high - low;
  const t = r * r;
  const c =
    r -
    t *
      (0.16666666666666602 +
        t *
          (-0.0027777777777015593 +
            t * (0.00006613756321437934 + t * (-0.0000016533902205465252 + t * 4.1381367970572385e-8))));
  return (1 - (low - (r * c) / (2 - c) - high)) * powers[k + 1074]!;
}
