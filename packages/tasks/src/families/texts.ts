import {
  PeriodicEvalError,
  type Json,
  type LogLikelihood,
  type Metric,
  type MetricKit,
  type Row,
  type Tokenizer,
} from "@periodic-eval/core";
import { isCount, quoteValue } from "@periodic-eval/core/internal";
import { checkLogProbs, measureInBatches } from "@periodic-eval/core/evaluations";
import { familyParts, type Family, type FamilyItem, type FamilyOptions, type FamilyRow } from "./family.ts";
import { rollingWindows } from "./rolling-windows.ts";
import { sequenceOf } from "./token-sequence.ts";

/** What the families take that score every token of a text. */
export interface TextsOptions<D extends Row> extends FamilyOptions<D> {
  readonly text: (document: D) => string;
  /**
   * Stands before every text, so that its first token is scored too (`prefix_token_id` of lm-evaluation-harness). Left out:
   * the begin-of-text token where the tokenizer adds one; else nothing does, and the first token is not scored.
   */
  readonly prefixToken?: number;
  /**
   * Of a text longer than the model's context: tokens that each further window scores, the rest of it being context.
   * Default the model's context: least work, and of each window the first token with one token before it.
   */
  readonly stride?: number;
}

export interface TextsItem<D> extends FamilyItem<D> {
  readonly text: string;
}

export interface TextsRow extends FamilyRow {
  /** `too_short`: no token stands after the first one. */
  readonly status: "scored" | "too_short";
  /** Tokens scored. */
  readonly tokens: number;
  /** Passes that it took. */
  readonly windows: number;
}

/** What of a text was scored. N tokens. */
export interface TextScores {
  /** The text that stands before the first scored token and was not scored; empty where all of it was. */
  readonly unscored: string;
  /** log p of each token, [N]. */
  readonly nats: readonly number[];
  /** Whether each was the most likely one, [N]; null where the engine cannot tell. */
  readonly isGreedy: readonly boolean[] | null;
}

export interface TextsFamily<D extends Row, V extends object> {
  /** The function's name, for errors. */
  readonly where: string;
  readonly options: TextsOptions<D>;
  readonly own: readonly string[];
  /** Null: the text was too short. */
  readonly judge: (item: TextsItem<D>, scores: TextScores | null) => V;
  readonly metrics: (kit: MetricKit<TextsRow & V>) => Readonly<Record<string, Metric<TextsRow & V>>>;
}

/** Texts asked in one call, of `measureInBatches`. */
const textsPerCall = 16;

/** An evaluation that looks at every token of texts; long ones by rolling windows. */
export function textsFamily<D extends Row, V extends object>({
  where,
  options,
  own,
  judge,
  metrics,
}: TextsFamily<D, V>): Family<D, TextsItem<D>, TextsRow & V, "tokenizer" | "logLikelihoods"> {
  const parts = familyParts(where, options, ["text", "prefixToken", "stride", ...own]);
  checkTexts(where, options);
  const { prefixToken = null, stride = null } = options;
  let provenance: Json = null;
  return {
    name: parts.name,
    version: parts.version,
    length: parts.length,
    needs: ["tokenizer", "logLikelihoods"],
    async items({ contextLength }) {
      const items = (await parts.items()).map((item) => ({ ...item, text: options.text(item.document) }));
      if (stride !== null && contextLength !== null && stride > contextLength)
        throw wrong(`${where}.stride`, stride, `at most ${contextLength}, the model's context`);
      provenance = parts.provenance({ prefix_token: prefixToken, stride, window: contextLength }, null);
      return items;
    },
    provenance: () => provenance,
    measure: (model, items, context, tell) =>
      measureInBatches(
        items,
        context,
        async (some) => {
          const encoded = some.map((item) => {
            const { ids, isPrefixed } = encodeText(model.tokenizer, item.text, prefixToken);
            const window = model.contextLength ?? Math.max(1, ids.length);
            return { item, ids, isPrefixed, windows: rollingWindows(ids.length, window, stride ?? window) };
          });
          const requests = encoded.flatMap(({ ids, windows }) =>
            windows.map(({ start, from, to }) => ({
              context: { ids: ids.slice(start, from) },
              continuation: { ids: ids.slice(from, to) },
            })),
          );
          const answers = (await model.logLikelihoods(requests, { signal: context.signal })).values();
          return encoded.map(({ item, ids, isPrefixed, windows }): TextsRow & V => {
            const { id, groups } = item;
            const scored = windows.map(() => answers.next().value!);
            for (const { start, from, to } of windows)
              tell?.(id, sequenceOf(ids.slice(start, from), ids.slice(from, to)));
            const [tokens, row] = [Math.max(0, ids.length - 1), { id, item: id, groups }];
            if (tokens === 0)
              return { ...row, status: "too_short", tokens, windows: 0, ...judge(item, null) };
            const unscored = isPrefixed
              ? ""
              : model.tokenizer.decode(ids.slice(0, 1), { specialTokens: false });
            const scores = { ...joined(scored), unscored };
            checkLogProbs(id, scores.nats, tokens);
            return { ...row, status: "scored", tokens, windows: windows.length, ...judge(item, scores) };
          });
        },
        textsPerCall,
      ),
    metrics: (kit) => parts.metrics(kit, {}, metrics),
    plainKeys: (_, rows) => ({
      texts: rows.filter(({ status }) => status === "scored").length,
      tokens: rows.reduce((sum, { tokens }) => sum + tokens, 0),
      too_short: rows.filter(({ status }) => status === "too_short").length,
      windows: rows.reduce((sum, { windows }) => sum + windows, 0),
    }),
  };
}

/** The ids of a text behind the token that stands before it; without one the text's first id is that token. */
function encodeText(tokenizer: Tokenizer, text: string, prefixToken: number | null) {
  const plain = tokenizer.encode(text, { specialTokens: false });
  const [first] = tokenizer.encode(text);
  const [always] = tokenizer.encode("");
  // A tokenizer that only ends texts with a special token has that one alone in an empty text.
  const prefix = prefixToken ?? (first === always ? always : undefined);
  return prefix === undefined
    ? { ids: plain, isPrefixed: false }
    : { ids: [prefix, ...plain], isPrefixed: true };
}

function joined(scored: readonly LogLikelihood[]): Omit<TextScores, "unscored"> {
  const greedy = scored.map(({ tokenIsGreedy = null }) => tokenIsGreedy);
  return {
    nats: scored.flatMap(({ tokenNats }) => tokenNats),
    isGreedy: greedy.includes(null) ? null : greedy.flatMap((one) => one ?? []),
  };
}

function checkTexts<D extends Row>(
  where: string,
  { text, prefixToken = 0, stride = 1 }: TextsOptions<D>,
): void {
  if (typeof text !== "function") throw wrong(`${where}.text`, text, "a function of a document");
  if (!isCount(prefixToken)) throw wrong(`${where}.prefixToken`, prefixToken, "a token id");
  if (!isCount(stride, 1)) throw wrong(`${where}.stride`, stride, "a whole number of 1 or more");
}

const wrong = (where: string, got: unknown, expected: string) =>
  new PeriodicEvalError({
    code: "config",
    where,
    got: quoteValue(got),
    expected,
    fix: "Correct it, or leave it out where it has a default.",
  });
