import type { Completion, GenerateRequest, Tokenizer } from "@periodic-eval/core";
import {
  acceptToken,
  beginWriting,
  completionOf,
  drawToken,
  fitRequest,
  isWritten,
  mapInTurns,
  yieldToEvents,
  type Drawn,
  type Writing,
} from "@periodic-eval/core/model";
import type { OnnxEngine, RowSize } from "./engine.ts";
import { disposeCache, type OnnxCache } from "./onnx-model.ts";
import { distribution, hasLogits, logitsAt, padded } from "./scoring.ts";

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
  const writings = await mapInTurns(requests, { signal, where: "generate" }, (request) =>
    beginWriting(fitRequest(tokenizer, request, window)),
  );
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
