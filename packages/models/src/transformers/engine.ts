import { PeriodicEvalError } from "@periodic-eval/core";
import { yieldToEvents } from "@periodic-eval/core/model";
import { groupByLength } from "@periodic-eval/tokenizers";
import {
  disposeCache,
  importTransformers,
  repeatCache,
  runPass,
  type OnnxCache,
  type OnnxFacts,
  type OnnxLogits,
  type OnnxPass,
  type TransformersModel,
} from "./onnx-model.ts";

/** Runs a model batch by batch, one pass at a time. */
export interface OnnxEngine {
  readonly facts: OnnxFacts;
  /** Whether each row is read alone: other rows and padding would change its numbers. */
  readonly isSingle: boolean;
  /** Whether keys and values can be repeated for other rows: they are in this process's memory. */
  readonly sharesCache: boolean;
  /** Repeats the keys and values of one row, and disposes the given ones. */
  repeated(cache: OnnxCache, rows: number): Promise<OnnxCache>;
  /**
   * Reads rows and calls `visit` with their logits. One row whose logits take more than 256 MB is read in pieces, each with the
   * keys and values of those before it.
   *
   * @returns The keys and values, which the caller disposes; null if not requested, or if the model has none.
   * @throws PeriodicEvalError `memory`, before the pass, for a row of 2 GB of logits that cannot be read in pieces; `aborted`,
   *   checked between pieces.
   */
  read(
    pass: OnnxPass,
    signal: AbortSignal,
    where: string,
    visit: (logits: OnnxLogits) => void,
  ): Promise<OnnxCache | null>;
  /** Whether the logits of rows that are read together take at most 256 MB. */
  fits(rows: readonly RowSize[]): boolean;
  /**
   * Groups rows of similar length, longest first, and runs `work` on the indices of each batch.
   *
   * @param isEqual Whether a batch may only have rows of one length. Default false.
   * @throws PeriodicEvalError `aborted`, checked between batches.
   */
  inBatches(
    rows: readonly RowSize[],
    signal: AbortSignal,
    where: string,
    work: (batch: readonly number[]) => Promise<void>,
    isEqual?: boolean,
  ): Promise<void>;
}

/** A row of tokens, and the position of the first one whose logits are needed. */
export interface RowSize {
  readonly length: number;
  readonly first: number;
}

export interface EngineLimits {
  /** Tokens of one pass, including padding. */
  readonly maxBatchTokens: number;
  readonly batching: "padded" | "single";
  /** Numbers in the logits of one pass. Default: 256 MB as float32. */
  readonly maxLogits?: number;
}

/** A row that cannot be read in pieces may have as many times the logits of a pass: 2 GB by default. */
const unsplitShare = 8;

export function openEngine(
  where: string,
  model: TransformersModel,
  facts: OnnxFacts,
  { maxBatchTokens, batching, maxLogits = 2 ** 26 }: EngineLimits,
): OnnxEngine {
  const isSingle = batching === "single";
  /** Positions of one pass, of all rows together. */
  const maxPositions = Math.max(1, Math.floor(maxLogits / (facts.vocabSize ?? 2 ** 16)));
  const maxTokens = isSingle ? 0 : maxBatchTokens;
  /** Passes run one after the other, so that concurrent calls share the memory of one. */
  let last: Promise<unknown> = Promise.resolve();
  const run = async (pass: OnnxPass): Promise<OnnxLogits> => {
    const peer = await importTransformers(where);
    const next = last.then(() => runPass(peer, model, facts, pass));
    last = next.catch(() => undefined);
    return next;
  };
  /** Positions whose logits a pass computes, of all rows together. */
  const positionsOf = (rows: number, width: number, first: number): number =>
    rows * (facts.keepsLogits ? width - first : width);
  const fits = (rows: readonly RowSize[]): boolean =>
    positionsOf(
      rows.length,
      Math.max(...rows.map(({ length }) => length)),
      Math.min(...rows.map(({ first }) => first)),
    ) <= maxPositions;
  return {
    facts,
    isSingle,
    sharesCache: !isSingle && facts.hasCache && facts.padsCache && ["cpu", "wasm"].includes(facts.device),
    repeated: async (cache, rows) => repeatCache(await importTransformers(where), cache, rows),
    fits,
    async read(pass, signal, operation, visit) {
      const width = pass.ids[0]!.length;
      const first = width - (pass.keep ?? width);
      const positions = positionsOf(pass.ids.length, width, first);
      const isWhole = positions <= maxPositions || pass.ids.length > 1 || !facts.readsPieces;
      let cache = pass.past ?? null;
      try {
        if (isWhole && positions > unsplitShare * maxPositions)
          throw tooLarge(operation, positions, unsplitShare * maxPositions);
        for (let from = 0, to = 0; from < width; from = to) {
          if (from > 0) await yieldToEvents(signal, operation);
          to = isWhole
            ? width
            : Math.min(width, (from === 0 && facts.keepsLogits ? first : from) + maxPositions);
          const past = cache;
          cache = null;
          const logits = await run({
            ids: pass.ids.map((ids) => ids.slice(from, to)),
            mask: pass.mask.map((mask) => mask.slice(0, mask.length - width + to)),
            past,
            keep: to - Math.max(from, first),
            isCached: pass.isCached === true || to < width,
          });
          ({ cache } = logits);
          visit(logits);
        }
        return cache;
      } catch (error) {
        disposeCache(cache);
        throw error;
      }
    },
    async inBatches(rows, signal, operation, work, isEqual = false) {
      const lengths = rows.map(({ length }) => length);
      const batches = groupByLength(lengths, (batch) => {
        const [longest, shortest] = [lengths[batch[0]!]!, lengths[batch.at(-1)!]!];
        const isRead = longest * batch.length <= maxTokens && (!isEqual || longest === shortest);
        return isRead && fits(batch.map((at) => rows[at]!));
      });
      for (const batch of batches) {
        await yieldToEvents(signal, operation);
        await work(batch);
      }
    },
  };
}

function tooLarge(where: string, positions: number, most: number): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "memory",
    where,
    got: `a pass that computes the logits of ${positions} tokens, for a model that cannot read a row in pieces`,
    expected: `at most ${most} tokens`,
    fix: `Pass { contextLength: ${most} } to fromTransformers, or load an export with a cache of keys and values (text-generation-with-past).`,
  });
}
