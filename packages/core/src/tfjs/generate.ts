import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "../errors.ts";
import type { CallOptions, Completion, GenerateRequest, Sampling, Tokenizer } from "../contracts/model.ts";
import { namedStream } from "../random/streams.ts";
import { batchBudget, type BatchBudget, type ForwardLimits } from "./batches.ts";
import { breathe } from "./breathe.ts";
import type { CausalLM } from "./causal-lm.ts";
import { download, refuseNaN } from "./device-scores.ts";
import { encodePrompt } from "../model/encode-pair.ts";
import { incrementalOf, reachOf, windowLength } from "./forward.ts";
import { inBatches } from "./in-batches.ts";
import { nextLogits } from "./next-logits.ts";
import { checkSampling, type Drawn, drawToken } from "./sampling.ts";

/** A sequence being written. */
interface Writing {
  readonly prompt: readonly number[];
  readonly sampling: Sampling;
  /** Tokens that window and `maxNewTokens` allow. */
  readonly room: number;
  readonly random: () => number;
  readonly ids: number[];
  readonly nats: number[];
  /** Text before a stop string; null while none was met. */
  stopped: Stopped | null;
}

type Stopped = { readonly by: "stop id" } | { readonly by: "stop string"; readonly text: string };

/**
 * Completions of ragged prompts, batched by length. Every sequence draws from its own stream, named by its seed, so it
 * draws the same numbers whatever its neighbours are.
 *
 * - `text` has no special tokens and ends before the first stop string; `ids` and `tokenNats` hold every token drawn,
 *   the stop id or the tokens of the stop string included. Nats are of the model's own distribution, before
 *   temperature, top-k and top-p.
 * - `finish` is `"length"` at `maxNewTokens`, and where the model's window is full.
 *
 * @throws PeriodicEvalError `config` for a sampling out of range; `data` for a prompt longer than the window, because a
 *   completion has nowhere to say what was cut; `model` for logits that are not numbers; `aborted` (looked
 *   for between tokens).
 */
export async function generate(
  lm: CausalLM,
  tokenizer: Tokenizer,
  requests: readonly GenerateRequest[],
  { signal, countTokens }: CallOptions,
  limits: ForwardLimits,
): Promise<readonly Completion[]> {
  const prompts = requests.map(({ prompt, sampling }) => {
    checkSampling(sampling);
    return fitted(lm, encodePrompt(tokenizer, prompt), sampling);
  });
  const completions: Completion[] = [];
  let tokens = 0;
  const longest = prompts.map(({ prompt, room }) => prompt.length + room - 1);
  const reach = reachOf(lm);
  for (const [isGreedy, isWithin] of kinds) {
    const group = prompts.flatMap(({ sampling }, index) => {
      const isOfKind = (sampling.temperature === 0) === isGreedy && longest[index]! <= reach === isWithin;
      return isOfKind ? [index] : [];
    });
    const costs = group.map((index) => ({ tokens: longest[index]!, scoredRows: 1 }));
    const budget = generationBudget(lm, isWithin, limits);
    await inBatches(lm, costs, budget, { signal, where: "generate" }, async (batch) => {
      const indices = batch.map((at) => group[at]!);
      // Begun here, so that a batch for which memory gave out is drawn again from the start of its streams.
      const writings = indices.map((index): Writing => {
        const { sampling } = prompts[index]!;
        return { ...prompts[index]!, random: namedStream(sampling.seed), ids: [], nats: [], stopped: null };
      });
      const draw = isGreedy ? mostLikely : drawFromEach;
      // Prompts differ in length: of smaller batches of them less is padding.
      const maxBatchTokens = Math.ceil(limits.maxBatchTokens / 2);
      await writeBatch(lm, tokenizer, writings, { draw, signal, maxBatchTokens });
      writings.forEach((writing, row) => {
        completions[indices[row]!] = completion(tokenizer, writing);
        tokens += writing.prompt.length + writing.ids.length;
      });
    });
  }
  countTokens?.(tokens);
  return completions;
}

/**
 * A batch without sampling downloads two numbers a row instead of V: greedy sequences go apart. So do those that may grow
 * longer than keys and values are kept for, and are then read whole, which takes more memory a row.
 */
const kinds = [
  [true, true],
  [true, false],
  [false, true],
  [false, false],
] as const;

function fitted(lm: CausalLM, prompt: readonly number[], sampling: Sampling) {
  const window = windowLength(lm);
  if (prompt.length > window) {
    throw new PeriodicEvalError({
      code: "data",
      where: "generate",
      got: `a prompt of ${prompt.length} tokens`,
      expected: `at most ${window} tokens, the model's window`,
      fix: "Shorten the prompt, or take a model with a longer window.",
    });
  }
  // The last token is drawn but never read.
  return { prompt, sampling, room: Math.min(sampling.maxNewTokens, window + 1 - prompt.length) };
}

type Draw = (logits: tf.Tensor2D, rows: readonly Writing[]) => Promise<readonly Drawn[]>;

/** Of keys and values kept at once: a step costs little more for sixteen sequences than for one. */
const maxCachedBytes = 2 ** 29;

function generationBudget(lm: CausalLM, isWithin: boolean, limits: ForwardLimits): BatchBudget {
  const budget = batchBudget(lm, limits);
  const incremental = incrementalOf(lm);
  if (incremental === null || !isWithin) return budget;
  const cached = Math.floor(maxCachedBytes / incremental.tokenBytes);
  return { ...budget, maxTokens: Math.max(cached, limits.maxBatchTokens) };
}

interface WriteOptions {
  readonly draw: Draw;
  readonly signal: AbortSignal;
  readonly maxBatchTokens: number;
}

async function writeBatch(
  lm: CausalLM,
  tokenizer: Tokenizer,
  batch: readonly Writing[],
  { draw, signal, maxBatchTokens }: WriteOptions,
): Promise<void> {
  const reader = nextLogits(lm, maxBatchTokens);
  try {
    let rows = batch;
    while (rows.length > 0) {
      await breathe(signal, "generate");
      const drawn = await draw(reader.next(rows), rows);
      refuseNaN(drawn.map(({ nats }) => nats));
      rows.forEach((writing, row) => accept(tokenizer, writing, drawn[row]!));
      rows = rows.filter(({ stopped, ids, room }) => stopped === null && ids.length < room);
    }
  } finally {
    reader.dispose();
  }
}

/** Ties go to the first id. Disposes `logits`. */
const mostLikely: Draw = async (logits) => {
  const [rows] = logits.shape;
  const scores = tf.tidy(() => {
    // As in `scoreRows`: the log of the largest probability is the largest token's log p.
    const nats = tf.log(tf.max(tf.softmax(logits, 1), 1));
    // Ids are exact in float32 up to 2^24, beyond any vocabulary.
    return tf.concat([tf.cast(tf.argMax(logits, 1), "float32"), nats]);
  });
  logits.dispose();
  const values = await download(scores);
  return Array.from({ length: rows }, (_, row) => ({ token: values[row]!, nats: values[rows + row]! }));
};

/** Disposes `logits`. */
const drawFromEach: Draw = async (logits, rows) => {
  const vocabulary = logits.shape[1];
  const values = await download(logits);
  return rows.map(({ sampling, random }, row) =>
    drawToken(values.subarray(row * vocabulary, (row + 1) * vocabulary), sampling, random),
  );
};

function accept(tokenizer: Tokenizer, writing: Writing, { token, nats }: Drawn): void {
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

const firstOf = (strings: readonly string[], text: string): number =>
  Math.min(...strings.map((string) => text.indexOf(string)).filter((index) => index >= 0));

/** A stop string that names a special token stands only in a text that shows them. */
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

function completion(tokenizer: Tokenizer, { ids, nats, stopped }: Writing): Completion {
  const written = stopped?.by === "stop id" ? ids.slice(0, -1) : ids;
  return {
    // Some tokenizers refuse to decode nothing.
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
