import type { Row } from "@periodic-eval/core";
import { pythonWhitespace } from "@periodic-eval/core/internal";
import type { Family } from "./family.ts";
import { textsFamily, type TextsItem, type TextsOptions, type TextsRow } from "./texts.ts";

export interface PerplexityOptions<D extends Row> extends TextsOptions<D> {
  /** The text whose words and bytes are counted; the scored one by default. Wikitext counts those before detokenization. */
  readonly original?: (document: D) => string;
}

export interface PerplexityRow extends TextsRow {
  /** Negative log-likelihood of all scored tokens, in nats; null where too short. */
  readonly nats: number | null;
  readonly words: number;
  /** UTF-8 bytes; of the scored text, those of a first token that is not scored left out. */
  readonly bytes: number;
}

/**
 * How surprising texts are: `perplexity` is exp(Σ nats / Σ tokens) over all of them, lower is better. Per text
 * (`evaluate` with `reduce: "none"`) it is exp of that text's own mean; the mean of these is not the corpus' value, for
 * texts differ in length and exp is not linear. Where the tokenizer adds no begin-of-text token, the first token of a text
 * has nothing before it and is not scored (unless a `prefixToken` is given). Texts longer than the model's context are
 * read in rolling windows, each token scored once.
 *
 * `nats_per_token`, `bits_per_byte`, `byte_perplexity` and `word_perplexity` stand beside it, the last three as
 * lm-evaluation-harness 0.4.13 defines them for wikitext 2.0 (words are what `re.split(r"\s+", …)` gives), and comparable
 * between tokenizers. Deviation: it scores the first token after its `prefix_token_id`; give that as `prefixToken` for
 * equal numbers. A first token that is not scored takes its bytes out of the count; where it holds a part of a character,
 * that part's bytes stay in.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function perplexityEvaluation<D extends Row>(
  options: PerplexityOptions<D>,
): Family<D, TextsItem<D>, PerplexityRow, "tokenizer" | "logLikelihoods"> {
  return textsFamily<D, Omit<PerplexityRow, keyof TextsRow>>({
    where: "perplexityEvaluation",
    options,
    own: ["original"],
    judge({ text, document }, scores) {
      const counted = options.original?.(document) ?? text;
      const words = counted.split(whiteSpace).length;
      const unscored = options.original === undefined ? (scores?.unscored ?? "") : "";
      // A part of a character decodes to U+FFFD, whose own bytes are others.
      const bytes = utf8Length(counted) - utf8Length(unscored.replaceAll("\uFFFD", ""));
      return { nats: scores === null ? null : -scores.nats.reduce((sum, one) => sum + one, 0), words, bytes };
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

const utf8Length = (text: string): number => new TextEncoder().encode(text).length;
