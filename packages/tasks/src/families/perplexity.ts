import type { Row } from "@periodic-eval/core";
import { pythonWhitespace } from "@periodic-eval/contracts/options";
import { byteLength } from "@periodic-eval/store/platform";
import { documentFunction, type Family } from "./family.ts";
import { textsFamily, type TextsItem, type TextsOptions, type TextsRow } from "./texts.ts";

export interface PerplexityOptions<D extends Row> extends TextsOptions<D> {
  /** The text whose words and bytes are counted; default the scored text. Wikitext counts them before detokenization. */
  readonly original?: (document: D) => string;
}

export interface PerplexityRow extends TextsRow {
  /** Negative log-likelihood of all scored tokens, in nats; null for `too_short`. */
  readonly nats: number | null;
  readonly words: number;
  /** UTF-8 bytes of the counted text, without those of a first token that is not scored. */
  readonly bytes: number;
}

/**
 * Measures the perplexity of texts: `perplexity` is exp(Σ nats / Σ tokens) over all texts; lower is better. With `evaluate` and
 * `reduce: "none"` it is exp of each text's mean. The mean of these is not the corpus value, because texts differ in length and
 * exp is not linear. If the tokenizer adds no begin-of-text token, the first token of a text has no context and is not scored,
 * unless `prefixToken` is set. Texts longer than the model's context are read in rolling windows; each token is scored once.
 *
 * Further metrics are `nats_per_token`, `bits_per_byte`, `byte_perplexity` and `word_perplexity`. The last three follow
 * lm-evaluation-harness 0.4.13 for wikitext 2.0 (words are the parts of `re.split(r"\s+", …)`), and can be compared between
 * tokenizers. Deviation: the harness scores the first token after its `prefix_token_id`; pass that as `prefixToken` for equal
 * numbers. The bytes of a first token that is not scored do not count; if that token holds a part of a character, the bytes of
 * that part do count.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function perplexityEvaluation<D extends Row>(
  options: PerplexityOptions<D>,
): Family<D, TextsItem<D>, PerplexityRow, "tokenizer" | "logLikelihoods"> {
  return textsFamily<D, Omit<PerplexityRow, keyof TextsRow>>({
    where: "perplexityEvaluation",
    options,
    ownShape: { original: documentFunction.optional() },
    judge({ text, document }, scores) {
      const counted = options.original?.(document) ?? text;
      const words = counted.split(whiteSpace).length;
      const unscored = options.original === undefined ? (scores?.unscored ?? "") : "";
      // A part of a character decodes to U+FFFD, which has other bytes.
      const bytes = byteLength(counted) - byteLength(unscored.replaceAll("\uFFFD", ""));
      return { nats: scores === null ? null : -scores.nats.reduce((a, b) => a + b, 0), words, bytes };
    },
    metrics({ ratio }) {
      const down = { higherIsBetter: false } as const;
      const per = (count: "tokens" | "words" | "bytes", unit = 1) =>
        ((row) => (row.nats === null ? null : [row.nats / unit, row[count]])) satisfies (
          row: PerplexityRow,
        ) => readonly [number, number] | null;
      return {
        perplexity: ratio(per("tokens"), { ...down, transform: "exp", primary: true }),
        nats_per_token: ratio(per("tokens"), { ...down, unit: "nats" }),
        bits_per_byte: ratio(per("bytes", Math.LN2), { ...down, unit: "bits" }),
        byte_perplexity: ratio(per("bytes"), { ...down, transform: "exp" }),
        word_perplexity: ratio(per("words"), { ...down, transform: "exp" }),
      };
    },
  });
}

const whiteSpace = new RegExp(`${pythonWhitespace}+`, "u");
