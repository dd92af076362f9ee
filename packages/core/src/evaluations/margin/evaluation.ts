import { checkKeys } from "../../internal/check-keys.ts";
import { quoteValue } from "../../internal/quote-value.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { defineEvaluation } from "../kit/define.ts";
import { nestedSubset } from "../kit/subset.ts";
import type { MetricKit, Row } from "../../contracts/evaluation.ts";
import { isCount } from "../../internal/is-count.ts";
import type { Json } from "../../contracts/json.ts";
import { encodePair } from "../../model/encode-pair.ts";
import type { EvaluableModel, Prompt } from "../../contracts/model.ts";
import { hashJson } from "../../random/hash.ts";
import type { MetricValue } from "../../contracts/snapshot.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import { readProbes, type Side, type Statement } from "./statements.ts";
import { sha256 } from "../prompting/sha256.ts";

export interface MarginOptions {
  /** Path of a JSON or YAML file `{ variant: { affirm: [texts], negate: [texts] } }`; other keys are not read. */
  readonly probes: string;
  /** Only these variants; default all. */
  readonly variants?: readonly string[];
  /**
   * What stands before each statement. Default `{ text: "" }`: the token that begins a text (begin-of-text, else
   * end-of-text), not scored. A text is joined as it is: end it with a space. After a chat the statement is what the
   * assistant says, or says on.
   */
  readonly before?: Prompt;
  /** Of the order in which a smaller budget takes the statements; default 42. */
  readonly seed?: number;
}

/** One statement. */
export interface MarginRow extends Row {
  readonly variant: string;
  readonly side: Side;
  /** Σ log p of its tokens. */
  readonly nats: number;
  readonly tokens: number;
  /** Tokens cut on the left of what stands before, to fit the model. */
  readonly truncatedTokens: number;
}

/**
 * What the model believes, by what it finds likely to be said: Σ log p of statements that affirm a belief against that
 * of statements that negate it. `margin`, the primary metric, is mean nats of an affirming statement minus that of a
 * negating one; `margin_per_token` Σ nats / Σ tokens of the ones minus the others'; each by variant as well. Statements of
 * the two sides are independent samples (they need be neither as many nor pairs): intervals are of `over_questions`,
 * statements like these, from each side's t interval; a change pairs each statement with itself (Welch over the sides),
 * so that what makes one statement longer than another drops out.
 *
 * It is no Σ − Σ, which grows with the number of statements and, where one side has more, measures that. Where the sides have
 * equally many, Σ − Σ is `margin` times their number; the plain key `sum_nats` gives it by variant, null where a budget or a
 * deadline left statements of it out.
 *
 * The level of a margin says little (longer statements are less likely, and the sides' wordings differ); its change does.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function marginEvaluation(options: MarginOptions) {
  checkOptions(options);
  const { probes, variants, before = { text: "" }, seed = 42 } = options;
  let provenance: Json = null;
  let asked: readonly Statement[] = [];
  return defineEvaluation({
    name: "margin",
    version: "margin-1",
    needs: ["logLikelihoods"],
    wants: ["tokenizer"],
    async items(): Promise<readonly Statement[]> {
      const { statements, text } = await readProbes(probes, variants);
      provenance = {
        file_sha256: await sha256(text),
        statements_hash: hashJson(statements.map((statement) => ({ ...statement }))),
        variants: [...new Set(statements.map(({ variant }) => variant))],
        before: JSON.parse(JSON.stringify(before)) as Json,
        subsample: { n: null, seed },
      };
      asked = statements;
      return nestedSubset(statements, { n: null, seed });
    },
    provenance: () => provenance,
    prompts: (model, items) => items.map(({ text }) => readPrompt(model, before, text)),
    measure: (model, items, context) =>
      measureInBatches(items, context, async (some): Promise<readonly MarginRow[]> => {
        const scores = await model.logLikelihoods(
          some.map(({ text }) => ({ context: before, continuation: text })),
          { signal: context.signal },
        );
        return some.map(({ id, variant, side }, at) => {
          const { sumNats, tokenNats, truncatedTokens } = scores[at]!;
          return { id, variant, side, nats: finite(id, sumNats), tokens: tokenNats.length, truncatedTokens };
        });
      }),
    metrics: ({ mean, ratio, contrast }: MetricKit<MarginRow>) => {
      const by = ({ variant }: MarginRow) => variant;
      const isAffirming = ({ side }: MarginRow) => side === "affirm";
      const ofSide = (wanted: Side) =>
        mean((row) => (row.side === wanted ? row.nats : null), { unit: "nats", range: [-Infinity, 0], by });
      const perToken = ratio(({ nats, tokens }) => [nats, tokens], { unit: "nats per token", by });
      return {
        margin: contrast(
          mean(({ nats }) => nats, { unit: "nats", by, primary: true }),
          isAffirming,
        ),
        margin_per_token: contrast(perToken, isAffirming),
        affirm_log_prob: ofSide("affirm"),
        negate_log_prob: ofSide("negate"),
      };
    },
    plainKeys: (metrics: Readonly<Record<string, MetricValue>>, rows: readonly MarginRow[]) => ({
      margins: Object.fromEntries(
        [...new Set(rows.map(({ variant }) => variant))].map((variant) => [
          variant,
          {
            sum_nats: sumNats(rows.filter(of(variant)), asked.filter(of(variant)).length),
            per_statement: metrics[`margin/${variant}`]?.value ?? null,
            per_token: metrics[`margin_per_token/${variant}`]?.value ?? null,
          },
        ]),
      ),
      num_statements: rows.length,
    }),
  });
}

/**
 * A statement, behind what stands before it, in the tokens in which it is scored. All statements follow the same: what stands
 * before them alone would be one prompt many times.
 *
 * @throws PeriodicEvalError `model` for one without a tokenizer.
 */
function readPrompt({ identity, tokenizer }: Reading, before: Prompt, text: string): Prompt {
  if (tokenizer === undefined) {
    throw new PeriodicEvalError({
      code: "model",
      where: "margin",
      got: `the model "${identity.name}", which has no tokenizer`,
      expected: "one that tells the tokens of a statement",
      fix: "Look at the prompts of another evaluation.",
    });
  }
  const { context, continuation } = encodePair(tokenizer, { context: before, continuation: text });
  return { ids: [...context, ...continuation] };
}

type Reading = Pick<EvaluableModel, "identity" | "tokenizer">;

const of =
  (wanted: string) =>
  ({ variant }: { readonly variant: string }) =>
    variant === wanted;

/** Σ of what affirms − Σ of what negates; null where some of the statements are missing. */
function sumNats(rows: readonly MarginRow[], statements: number): number | null {
  if (rows.length !== statements) return null;
  return rows.reduce((sum, { side, nats }) => sum + (side === "affirm" ? nats : -nats), 0);
}

function finite(id: string, nats: number): number {
  if (Number.isFinite(nats)) return nats;
  throw new PeriodicEvalError({
    code: "model",
    where: `statement ${id}`,
    got: `Σ log p of ${nats}`,
    expected: "a finite number",
    fix: "Look at the loss: weights that are NaN or infinite answer so.",
  });
}

/** The options of `MarginOptions`, for callbacks that add their own. */
export const marginOptionNames = Object.keys({
  probes: true,
  variants: true,
  before: true,
  seed: true,
} satisfies Record<keyof MarginOptions, true>);

function checkOptions(options: MarginOptions): void {
  checkKeys("margin", options, marginOptionNames);
  const { probes, variants, before, seed = 0 } = options;
  const wrong = (option: string, got: unknown, expected: string, fix: string) =>
    new PeriodicEvalError({ code: "config", where: `margin.${option}`, got: quoteValue(got), expected, fix });
  if (typeof probes !== "string" || probes === "")
    throw wrong("probes", probes, "the path of a JSON or YAML file", "Name the file of statements.");
  if (
    variants !== undefined &&
    !(Array.isArray(variants) && variants.every((one) => typeof one === "string"))
  )
    throw wrong("variants", variants, "a list of variants' names", "Leave it out for all.");
  if (
    before !== undefined &&
    !["text", "ids", "messages"].some((kind) => Object.hasOwn(Object(before), kind))
  )
    throw wrong("before", before, "{ text }, { ids } or { messages }", 'Leave it out for { text: "" }.');
  if (!isCount(seed)) throw wrong("seed", seed, "a whole number of 0 or more", "Correct the number.");
}
