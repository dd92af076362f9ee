import * as z from "zod";
import { type BulkTokenizer, type Json, type MetricKit, type Row } from "@periodic-eval/contracts";
import {
  codeOption,
  dataError,
  filledString,
  modelError,
  parseOptions,
} from "@periodic-eval/contracts/options";
import { readText } from "@periodic-eval/data";
import { defineEvaluation } from "../kit/define.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import { nestedSubset } from "../kit/subset.ts";

/** The test split of WikiText-2 (arXiv:1609.07843): 1.3 MB of English articles. */
const defaultText = "hf:Salesforce/wikitext/wikitext-2-raw-v1/test";
const tokensPerChunk = 256;
/** Code points of a window, of which the first tokens are a chunk: 256 tokens of English are about 1,100. */
const window = /[^]{1,2047}(?:\s|$)|[^]{2048}/gu;

/**
 * Measures how well the model still predicts general text that it is not trained on: the mean negative log-likelihood of held-out
 * chunks of 256 tokens. `nats_per_byte`, the primary metric, is comparable between tokenizers; `nats_per_token` is the logarithm
 * of the perplexity, and transformers' loss. Each chunk follows the token that starts a text, which is not scored. Chunks are
 * paired with those of the baseline. Generates nothing.
 *
 * It sees text like the held-out one only: a model can forget a skill and still predict articles.
 *
 * @throws PeriodicEvalError `config` for a wrong option; before step 1 `data` for a text of fewer than two chunks.
 */
export function forgettingEvaluation(options: ForgettingOptions = {}) {
  parseOptions("forgetting options", z.strictObject(forgettingShape), options);
  const { text = defaultText, chunks: n = 50 } = options;
  let provenance: Json = null;
  return defineEvaluation({
    name: "forgetting",
    version: "forgetting-1",
    needs: ["tokenizer", "logLikelihoods"],
    async items({ tokenizer, contextLength }): Promise<readonly Chunk[]> {
      const { text: whole, provenance: source } = await readText(text, codeOption("forgetting", "text"));
      const subsample = { n, seed: 42 };
      const windows = (whole.match(window) ?? []).flatMap((part, at) =>
        part.trim() === "" ? [] : [{ id: String(at), text: part }],
      );
      if (windows.length < 2)
        throw dataError(
          text,
          windows.length === 0 ? "no text" : `a text of ${[...whole].length} characters, one chunk`,
          "text for two chunks or more: more than 2,048 characters",
          "Name a longer text.",
        );
      const tokens = Math.min(tokensPerChunk, (contextLength ?? Infinity) - 1);
      provenance = { ...source, tokens_per_chunk: tokens, subsample };
      return chunksOf(tokenizer, nestedSubset(windows, subsample), tokens);
    },
    provenance: () => provenance,
    measure: (model, items, context) =>
      measureInBatches(
        items,
        context,
        async (batch): Promise<readonly ForgettingRow[]> => {
          const requests = batch.map(({ ids }) => ({ context: { text: "" }, continuation: { ids } }));
          const scores = await model.logLikelihoods(requests, { signal: context.signal });
          return batch.map(({ id, text, bytes }, at) => {
            const { sumNats, tokenNats } = scores[at]!;
            if (!Number.isFinite(sumNats)) throw notFinite(id, sumNats);
            return { id, text, nats: sumNats, tokens: tokenNats.length, bytes };
          });
        },
        chunksPerBatch,
      ),
    answers: { question: "text" },
    metrics: ({ ratio }: MetricKit<ForgettingRow>) => {
      const common = { higherIsBetter: false, range: [0, Infinity] as const };
      return {
        nats_per_byte: ratio(({ nats, bytes }) => [-nats, bytes], {
          ...common,
          unit: "nats per byte",
          primary: true,
        }),
        nats_per_token: ratio(({ nats, tokens }) => [-nats, tokens], { ...common, unit: "nats per token" }),
      };
    },
  });
}

const chunksPerBatch = 8;

interface Chunk extends Row {
  readonly text: string;
  readonly ids: readonly number[];
  readonly bytes: number;
}

/** One chunk of text. */
export interface ForgettingRow extends Row {
  /** The beginning of a window, as far as the tokens spell it. */
  readonly text: string;
  /** Σ log p of its tokens. */
  readonly nats: number;
  readonly tokens: number;
  /** UTF-8 bytes of `text`. */
  readonly bytes: number;
}

/** Returns the first `most` tokens of each window, or as many fewer as keep a character of several tokens whole. */
async function chunksOf(
  tokenizer: BulkTokenizer,
  windows: readonly (Row & { readonly text: string })[],
  most: number,
): Promise<readonly Chunk[]> {
  const encoded = await tokenizer.encode(
    windows.map(({ text }) => text),
    { specialTokens: false },
  );
  const shorter = [0, 1, 2, 3];
  const starts = encoded.flatMap((ids) => shorter.map((fewer) => ids.slice(0, Math.max(1, most - fewer))));
  const texts = await tokenizer.decode(starts);
  return windows.map(({ id, text: window }, at) => {
    const first = at * shorter.length;
    const wholes = shorter.map((fewer) => first + fewer);
    const chosen = wholes.find((index) => !texts[index]!.endsWith("\uFFFD")) ?? first;
    const text = spelledBy(texts[chosen]!, window);
    return { id, text, ids: starts[chosen]!, bytes: new TextEncoder().encode(text).length };
  });
}

/**
 * Returns the part of a window that its first tokens spell. Some tokenizers change white space when they decode: " ," becomes ",".
 * The other characters say how far the tokens reach.
 */
function spelledBy(decoded: string, window: string): string {
  if (window.startsWith(decoded)) return decoded;
  const characters = [...decoded.replaceAll(/\s/g, "")].length;
  return new RegExp(`^(?:\\s*\\S){0,${characters}}`, "u").exec(window)![0];
}

const notFinite = (id: string, nats: number) =>
  modelError(
    `chunk ${id}`,
    `Σ log p of ${nats}`,
    "a finite number",
    "Check the training loss: NaN or infinite weights cause this.",
  );

export interface ForgettingOptions {
  /**
   * Text that the model is not trained on: a text file, or rows with the field `text` as JSON Lines, Parquet or
   * `hf:owner/dataset[/config][/split]`. Default: the test split of WikiText-2, which is downloaded once into the cache of
   * huggingface_hub.
   */
  readonly text?: string;
  /** Number of chunks, 2 or more, spread over the text. Default 50. A shorter text is used whole. */
  readonly chunks?: number;
}

export const forgettingShape = {
  text: filledString("the path of a text file, or hf:owner/dataset")
    .meta({ fix: "Name the file or the dataset of text." })
    .optional(),
  chunks: z.int("an integer of 2 or more").min(2, "2 or more").optional(),
} satisfies Record<keyof ForgettingOptions, z.ZodType>;
