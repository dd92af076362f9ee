import { yieldToEvents } from "@periodic-eval/core/model";
import { sharedLength, type ScoredSequence } from "@periodic-eval/tokenizers";
import { modelError } from "../folder/model-error.ts";
import type { OnnxEngine } from "./engine.ts";
import { disposeCache, type OnnxCache, type OnnxLogits } from "./onnx-model.ts";

/** The scores of one sequence. */
export interface Scores {
  /** log p of the picks of all positions, in nats, in order. */
  readonly nats: number[];
  /** Whether each pick was the most likely token; a tie counts. */
  readonly isTop: boolean[];
  /** The most likely token in place of each pick, the first of a tie. */
  readonly greedyIds: number[];
  /** Entropy of each scored position, in nats. */
  readonly entropyNats: number[];
}

/**
 * Scores sequences. One that begins another is scored in the other's row, because later tokens do not change its logits. Rows that
 * differ only in their last tokens, as the answers 0 to 100 of a judge, read their common beginning once.
 *
 * @returns The scores in the order of the sequences, and the tokens that the model read, without padding.
 * @throws PeriodicEvalError `model` for logits that are not numbers; `aborted`.
 */
export async function scoreSequences(
  engine: OnnxEngine,
  sequences: readonly ScoredSequence[],
  signal: AbortSignal,
): Promise<{ readonly scores: readonly Scores[]; readonly tokens: number }> {
  const scores = sequences.map((): Scores => ({ nats: [], isTop: [], greedyIds: [], entropyNats: [] }));
  const rows = sharedRows(sequences, !engine.isSingle);
  const families = engine.sharesCache ? familiesOf(rows) : [];
  const inFamily = new Set(families.flatMap((family) => family.rows));
  let tokens = 0;
  /** Scores the positions of a row whose logits a pass computed. */
  const keep = ({ members }: Row, logits: OnnxLogits, at: number) => {
    for (const index of members) addScores(scores[index]!, sequences[index]!, logits, at);
  };
  for (const family of families) {
    await yieldToEvents(signal, "scoring");
    await readFamily(engine, family, signal, (logits) =>
      family.rows.forEach((row, at) => keep(row, logits, at)),
    );
    tokens += family.rows.reduce((sum, { ids }) => sum + ids.length - family.prefix, family.prefix);
  }
  const alone = rows.filter((row) => !inFamily.has(row));
  const sizes = alone.map(({ ids: { length }, first }) => ({ length, first }));
  await engine.inBatches(sizes, signal, "scoring", async (batch) => {
    const chosen = batch.map((at) => alone[at]!);
    const width = Math.max(...chosen.map(({ ids }) => ids.length));
    const mask = chosen.map(({ ids }) => Array.from({ length: width }, (_, at) => (at < ids.length ? 1 : 0)));
    const pass = {
      ids: chosen.map(({ ids }) => padded(ids, width, 0)),
      mask,
      keep: width - Math.min(...chosen.map(({ first }) => first)),
    };
    disposeCache(
      await engine.read(pass, signal, "scoring", (logits) =>
        chosen.forEach((row, at) => keep(row, logits, at)),
      ),
    );
  });
  return { scores, tokens: sizes.reduce((sum, { length }) => sum + length, tokens) };
}

/** A row that the model reads, for one sequence or several. */
interface Row {
  readonly ids: readonly number[];
  /** Indices of the sequences. */
  readonly members: number[];
  /** The first scored position. */
  first: number;
}

/** Rows that begin with the same `prefix` tokens, none of which is scored. */
interface Family {
  readonly rows: Row[];
  prefix: number;
}

/** A shorter beginning takes less time than reading it once saves. */
const shortestPrefix = 32;
/** The rest of a family's rows is read token by token. */
const longestRest = 8;
const largestFamily = 128;

function familiesOf(rows: readonly Row[]): readonly Family[] {
  const families: Family[] = [];
  for (const row of rows) {
    const family = families.at(-1);
    const prefix =
      family === undefined
        ? 0
        : sharedLength(family.rows[0]!.ids, row.ids, Math.min(family.prefix, row.first));
    const longest = Math.max(row.ids.length, ...(family?.rows.map(({ ids }) => ids.length) ?? []));
    const fits = prefix >= shortestPrefix && longest - prefix <= longestRest;
    if (family !== undefined && fits && family.rows.length < largestFamily) {
      family.rows.push(row);
      family.prefix = prefix;
    } else families.push({ rows: [row], prefix: row.first });
  }
  return families.filter((family) => family.rows.length > 1);
}

/** Reads the prefix of a family, then its rows token by token, and calls `visit` with the logits of each step. */
async function readFamily(
  engine: OnnxEngine,
  { rows, prefix }: Family,
  signal: AbortSignal,
  visit: (logits: OnnxLogits) => void,
): Promise<void> {
  const longest = Math.max(...rows.map(({ ids }) => ids.length));
  const start = rows[0]!.ids.slice(0, prefix);
  const mask = rows.map(() => start.map(() => 1));
  const beginning = { ids: [start], mask: [mask[0]!], keep: 1, isCached: true };
  const read = await engine.read(beginning, signal, "scoring", () => undefined);
  let cache: OnnxCache | null = await engine.repeated(read!, rows.length);
  try {
    for (let at = prefix; at < longest; at++) {
      rows.forEach(({ ids }, row) => mask[row]!.push(at < ids.length ? 1 : 0));
      const past: OnnxCache | null = cache;
      cache = null;
      const ids = rows.map((row) => [row.ids[at] ?? 0]);
      cache = await engine.read({ ids, mask, past, keep: 1, isCached: true }, signal, "scoring", visit);
    }
  } finally {
    disposeCache(cache);
  }
}

const firstScored = ({ ids, picks }: ScoredSequence): number => ids.length - picks.length;

export const padded = (row: readonly number[], width: number, value: number): number[] => [
  ...row,
  ...Array<number>(width - row.length).fill(value),
];

/** Groups sequences by the row that serves them, in descending order of their ids. */
function sharedRows(sequences: readonly ScoredSequence[], mayExtend: boolean): readonly Row[] {
  const order = sequences
    .map((_, index) => index)
    .toSorted((a, b) => compare(sequences[b]!.ids, sequences[a]!.ids));
  const rows: Row[] = [];
  // In descending order, a sequence comes right after those that begin with it.
  for (const index of order) {
    const sequence = sequences[index]!;
    const { ids } = sequence;
    const row = rows.at(-1);
    const isShared =
      row !== undefined &&
      ids.every((id, at) => id === row.ids[at]) &&
      (mayExtend || ids.length === row.ids.length);
    if (isShared) {
      row.members.push(index);
      row.first = Math.min(row.first, firstScored(sequence));
    } else rows.push({ ids, members: [index], first: firstScored(sequence) });
  }
  return rows;
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((id, index) => id !== b[index]);
  if (at < 0) return a.length - b.length;
  return at < b.length ? a[at]! - b[at]! : 1;
}

/** Adds the scores of the positions whose logits a pass computed, in the row `row` of the pass. */
function addScores(
  { nats, isTop, greedyIds, entropyNats }: Scores,
  sequence: ScoredSequence,
  logits: OnnxLogits,
  row: number,
): void {
  sequence.picks.forEach((tokens, at) => {
    const position = firstScored(sequence) + at;
    if (!hasLogits(logits, position)) return;
    const values = logitsAt(logits, row, position);
    const { top, topId, logSum, entropy } = distribution(values);
    entropyNats.push(entropy);
    for (const token of tokens) {
      nats.push(values[token]! - top - logSum);
      isTop.push(values[token]! >= top);
      greedyIds.push(topId);
    }
  });
}

export const hasLogits = ({ from, count }: OnnxLogits, position: number): boolean =>
  position >= from && position < from + count;

/** Returns the logits [V] of a row at a position of its sequence. */
export function logitsAt(
  { values, count, from, vocabSize }: OnnxLogits,
  row: number,
  position: number,
): Float32Array {
  const start = (row * count + position - from) * vocabSize;
  return values.subarray(start, start + vocabSize);
}

/**
 * Returns the largest logit, its id (the first of a tie), log Σ exp(logit − top), and the entropy in nats, in double precision.
 *
 * @throws PeriodicEvalError `model` for NaN.
 */
export function distribution(logits: Float32Array): {
  readonly top: number;
  readonly topId: number;
  readonly logSum: number;
  readonly entropy: number;
} {
  let [top, topId] = [-Infinity, 0];
  for (let id = 0; id < logits.length; id++) if (logits[id]! > top) [top, topId] = [logits[id]!, id];
  let sum = 0;
  let weighted = 0;
  for (const logit of logits) {
    const nats = logit - top;
    const weight = Math.exp(nats);
    sum += weight;
    // Tokens masked with −∞ add nothing.
    if (weight > 0) weighted += weight * nats;
  }
  const logSum = Math.log(sum);
  if (Number.isFinite(logSum)) return { top, topId, logSum, entropy: logSum - weighted / sum };
  throw modelError({
    where: "the model's logits",
    got: "NaN",
    expected: "numbers",
    fix: "Load the model with another dtype: float16 overflows in some models.",
  });
}
