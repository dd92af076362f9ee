import * as z from "zod";
import { configError, positiveInteger } from "@periodic-eval/contracts/options";
import type { BulkTokenizer, CallOptions, LogLikelihood, Metric, MetricKit, Row } from "@periodic-eval/core";
import { checkLogProbs, measureInBatches } from "@periodic-eval/core/evaluations";
import { familyOf } from "./evaluate.ts";
import {
  documentFunction,
  familyParts,
  type Family,
  type FamilyItem,
  type FamilyOptions,
  type FamilyParts,
  type FamilyRow,
  sequenceOf,
} from "./family.ts";

/** Options of the families that score every token of a text. */
export interface TextsOptions<D extends Row> extends FamilyOptions<D> {
  readonly text: (document: D) => string;
  /**
   * A token put before every text, so that the text's first token is scored too (`prefix_token_id` of lm-evaluation-harness).
   * Default: the tokenizer's begin-of-text token. If it adds none, the first token is not scored.
   */
  readonly prefixToken?: number;
  /**
   * For a text longer than the model's context: how many tokens each further window scores; the rest of the window is context.
   * Default: the model's context length. That is the least work, and gives the first token of a window one token of context.
   */
  readonly stride?: number;
}

export interface TextsItem<D> extends FamilyItem<D> {
  readonly text: string;
}

export interface TextsRow extends FamilyRow {
  /** `too_short`: the text has no token after the first. */
  readonly status: "scored" | "too_short";
  /** Tokens scored. */
  readonly tokens: number;
  /** Number of passes over the text. */
  readonly windows: number;
}

/** The scores of a text with N scored tokens. */
export interface TextScores {
  /** The beginning of the text that was not scored; empty if all of it was. */
  readonly unscored: string;
  /** log p of each token, [N]. */
  readonly nats: readonly number[];
  /** Whether each token was the most likely one, [N]; null if the engine does not report it. */
  readonly isGreedy: readonly boolean[] | null;
  /** The most likely token in place of each token, decoded; null if the family did not ask for it, or the engine has none. */
  readonly predicted: string | null;
}

export interface TextsFamily<D extends Row, V extends object, G extends TextsRow & V> {
  /** The function's name, for errors. */
  readonly where: string;
  readonly options: TextsOptions<D>;
  /** Schemas of the options that only this family has. */
  readonly ownShape: z.ZodRawShape;
  /** Whether `judge` needs `predicted`; default false. */
  readonly needsPredicted?: boolean;
  /** Receives null if the text was too short. */
  readonly judge: (item: TextsItem<D>, scores: TextScores | null) => V;
  /** Returns the evaluation's `grade`. Default: rows are not graded. */
  readonly grade?: (
    documentOf: FamilyParts<D>["documentOf"],
  ) => (rows: readonly (TextsRow & V)[], call: CallOptions) => Promise<readonly G[]>;
  readonly metrics: (kit: MetricKit<G>) => Readonly<Record<string, Metric<G>>>;
}

/** Texts per call of `measureInBatches`. */
const textsPerCall = 16;

const tokenId = "a token id: an integer of 0 or more";
const textsShape = {
  text: documentFunction,
  prefixToken: z.int(tokenId).nonnegative(tokenId).optional(),
  stride: positiveInteger.optional(),
};

/** Returns an evaluation that scores every token of texts; long texts in rolling windows. */
export function textsFamily<D extends Row, V extends object, G extends TextsRow & V = TextsRow & V>({
  where,
  options,
  ownShape,
  needsPredicted = false,
  judge,
  grade,
  metrics,
}: TextsFamily<D, V, G>): Family<D, TextsItem<D>, TextsRow & V, "tokenizer" | "logLikelihoods", G> {
  const parts = familyParts(where, options, { ...textsShape, ...ownShape });
  const { prefixToken = null, stride = null } = options;
  return familyOf(parts.common, {
    needs: ["tokenizer", "logLikelihoods"],
    async items({ contextLength }) {
      const items = (await parts.items()).map((item) => ({ ...item, text: options.text(item.document) }));
      if (stride !== null && contextLength !== null && stride > contextLength)
        throw configError({
          where: `${where} options`,
          path: ["stride"],
          value: stride,
          expected: `at most ${contextLength}, the model's context length`,
        });
      parts.describe({ prefix_token: prefixToken, stride, window: contextLength }, null);
      return items;
    },
    async measure(model, items, context, onSequence) {
      const allEncoded = await encodeTexts(model.tokenizer, items, prefixToken);
      return measureInBatches(
        items,
        context,
        async (some) => {
          const encoded = some.map((item) => {
            const { ids, isPrefixed } = allEncoded.get(item)!;
            const window = model.contextLength ?? Math.max(1, ids.length);
            return { item, ids, isPrefixed, windows: rollingWindows(ids.length, window, stride ?? window) };
          });
          const requests = encoded.flatMap(({ ids, windows }) =>
            windows.map(({ start, from, to }) => ({
              context: { ids: ids.slice(start, from) },
              continuation: { ids: ids.slice(from, to) },
              ...(needsPredicted && { greedyIds: true }),
            })),
          );
          const answers = (await model.logLikelihoods(requests, { signal: context.signal })).values();
          const results = encoded.map((text) => ({
            ...text,
            scored: text.windows.map(() => answers.next().value!),
          }));
          const decoded = (await decodeResults(model.tokenizer, results)).values();
          return results.map(({ item, ids, isPrefixed, windows, scored }): TextsRow & V => {
            const { id, groups } = item;
            const [unscored, predicted] = decoded.next().value!;
            onSequence?.(id, sequenceOf(ids.slice(0, 1), ids.slice(1)));
            const [tokens, row] = [Math.max(0, ids.length - 1), { id, item: id, groups }];
            if (tokens === 0)
              return { ...row, status: "too_short", tokens, windows: 0, ...judge(item, null) };
            const scores = { ...joined(scored), unscored: isPrefixed ? "" : unscored, predicted };
            checkLogProbs(id, scores.nats, tokens);
            return { ...row, status: "scored", tokens, windows: windows.length, ...judge(item, scores) };
          });
        },
        textsPerCall,
      );
    },
    ...(grade && { grade: grade(parts.documentOf) }),
    answers: null,
    metrics: (kit) => parts.metrics(kit, {}, metrics),
    plainKeys: (_, rows) => ({
      texts: rows.filter(({ status }) => status === "scored").length,
      tokens: rows.reduce((sum, { tokens }) => sum + tokens, 0),
      too_short: rows.filter(({ status }) => status === "too_short").length,
      windows: rows.reduce((sum, { windows }) => sum + windows, 0),
    }),
  });
}

interface EncodedText {
  readonly ids: readonly number[];
  readonly isPrefixed: boolean;
}

/**
 * Returns the ids of each text after the prefix token, with two calls of the tokenizer. Without a prefix token, a text's first id is
 * context only.
 */
async function encodeTexts<I extends { readonly text: string }>(
  tokenizer: BulkTokenizer,
  items: readonly I[],
  prefixToken: number | null,
): Promise<ReadonlyMap<I, EncodedText>> {
  const texts = items.map(({ text }) => text);
  const plain = await tokenizer.encode(texts, { specialTokens: false });
  const marked = prefixToken === null ? await tokenizer.encode([...texts, ""]) : [];
  const always = marked.at(-1)?.[0];
  return new Map(
    items.map((item, at) => {
      // A tokenizer that appends a special token encodes the empty string as that token alone.
      const prefix = prefixToken ?? (marked[at]![0] === always ? always : undefined);
      const ids = plain[at]!;
      return [
        item,
        prefix === undefined ? { ids, isPrefixed: false } : { ids: [prefix, ...ids], isPrefixed: true },
      ];
    }),
  );
}

function joined(scored: readonly LogLikelihood[]): Pick<TextScores, "nats" | "isGreedy"> {
  const greedy = scored.map(({ tokenIsGreedy = null }) => tokenIsGreedy);
  return {
    nats: scored.flatMap(({ tokenNats }) => tokenNats),
    isGreedy: greedy.includes(null) ? null : greedy.flatMap((flags) => flags ?? []),
  };
}

/** Returns two strings for each text: its first token, and the predicted tokens; null if the engine does not report them. */
async function decodeResults(
  tokenizer: BulkTokenizer,
  results: readonly (Pick<EncodedText, "ids"> & { readonly scored: readonly LogLikelihood[] })[],
): Promise<readonly [first: string, predicted: string | null][]> {
  const predicted = results.map(({ scored }) => {
    const ids = scored.map(({ tokenGreedyIds = null }) => tokenGreedyIds);
    return ids.includes(null) ? null : ids.flatMap((window) => window ?? []);
  });
  const rows = results.flatMap(({ ids }, at) => [ids.slice(0, 1), predicted[at] ?? []]);
  const texts = await tokenizer.decode(rows, { specialTokens: false });
  return results.map((_, at) => [texts[2 * at]!, predicted[at] === null ? null : texts[2 * at + 1]!]);
}

/** Tokens scored in one pass: `[from, to)` of the sequence, with `[start, from)` as context. */
interface RollingWindow {
  readonly start: number;
  readonly from: number;
  readonly to: number;
}

/**
 * Returns windows over a sequence longer than a model's context. Every token but the first is scored exactly once, as in
 * lm-evaluation-harness 0.4.13 (`get_rolling_token_windows`, made disjoint), whose `context_len` is window − stride + 1. Each
 * window but the first is full: the last tokens get the longest context that fits.
 *
 * @param length Tokens of the sequence. The first is context only.
 * @param window Most tokens that the model reads. It scores as many, and does not read the last of them.
 * @param stride Tokens scored by each window but the first and the last; 1 to `window`.
 */
export function rollingWindows(
  length: number,
  window: number,
  stride: number = window,
): readonly RollingWindow[] {
  const windows: RollingWindow[] = [];
  for (let from = 1; from < length;) {
    const to = Math.min(length, from + (windows.length === 0 ? window : stride));
    windows.push({ start: Math.max(0, to - 1 - window), from, to });
    from = to;
  }
  return windows;
}
