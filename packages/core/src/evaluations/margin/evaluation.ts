import * as z from "zod";
import {
  type MetricKit,
  type Json,
  type EvaluableModel,
  type Prompt,
  type MetricValue,
  hashJson,
  type Row,
} from "@periodic-eval/contracts";
import { parseOptions, isRecord, filledString, modelError } from "@periodic-eval/contracts/options";
import { encodePairs } from "../../model/encode-pair.ts";
import { defineEvaluation } from "../kit/define.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import { everyItem, nestedSubset } from "../kit/subset.ts";
import { readStatements, type Statement, type Side } from "./statements.ts";

/**
 * Measures what the model believes: Σ log p of statements that affirm a belief against Σ log p of statements that negate it.
 * `margin`, the primary metric, is the mean nats of an affirming statement minus the mean nats of a negating one;
 * `margin_per_token` is Σ nats / Σ tokens of the affirming statements minus that of the negating ones; both also per variant.
 * The statements of the two sides are independent samples: they need not be pairs, nor equal in number. Intervals are
 * `over_questions` (statements like these), from each side's t interval. A change pairs each statement with itself (Welch over
 * the sides), so that the length of a statement cancels out.
 *
 * `margin` is no difference of sums: that would grow with the number of statements and, with sides of different size, measure
 * the size. With n statements on each side, the difference of sums is n · `margin`. The plain key `sum_nats` has it per variant;
 * it is null if a budget or a deadline omitted statements of the variant.
 *
 * The level of a margin means little, because longer statements are less likely and the sides differ in wording. Its change
 * does.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function marginEvaluation(options: MarginOptions) {
  parseOptions("margin options", z.strictObject(marginShape), options);
  const { probes, before = { text: "" } } = options;
  let provenance: Json = null;
  let all: readonly Statement[] = [];
  return defineEvaluation({
    name: "margin",
    version: "margin-1",
    needs: ["logLikelihoods"],
    wants: ["tokenizer"],
    async items(): Promise<readonly Statement[]> {
      const { statements, provenance: source } = await readStatements(probes);
      provenance = {
        ...source,
        statements_hash: hashJson(statements.map((statement) => ({ ...statement }))),
        variants: [...new Set(statements.map(({ variant }) => variant))],
        before: JSON.parse(JSON.stringify(before)) as Json,
        subsample: everyItem,
      };
      all = statements;
      return nestedSubset(statements, everyItem);
    },
    provenance: () => provenance,
    prompts: (model, items) => statementPrompts(model, before, items),
    measure: (model, items, context) =>
      measureInBatches(items, context, async (batch): Promise<readonly MarginRow[]> => {
        const scores = await model.logLikelihoods(
          batch.map(({ text }) => ({ context: before, continuation: text })),
          { signal: context.signal },
        );
        return batch.map(({ id, variant, side }, at) => {
          const { sumNats, tokenNats, truncatedTokens } = scores[at]!;
          requireFinite(id, sumNats);
          return { id, variant, side, nats: sumNats, tokens: tokenNats.length, truncatedTokens };
        });
      }),
    answers: null,
    metrics: (kit: MetricKit<MarginRow>) => marginMetrics(kit),
    plainKeys: (metrics: Readonly<Record<string, MetricValue>>, rows: readonly MarginRow[]) =>
      marginPlainKeys(metrics, rows, all),
  });
}

/**
 * Returns each statement after its context, as the ids in which it is scored. The context alone would be the same prompt for every
 * statement.
 *
 * @throws PeriodicEvalError `model` for a model without a tokenizer.
 */
async function statementPrompts(
  { identity, tokenizer }: Pick<EvaluableModel, "identity" | "tokenizer">,
  before: Prompt,
  statements: readonly Statement[],
): Promise<readonly Prompt[]> {
  if (tokenizer === undefined) {
    throw modelError(
      "margin",
      `the model "${identity.name}", which has no tokenizer`,
      "a model with the ability tokenizer",
      "Use the prompts of another evaluation.",
    );
  }
  const requests = statements.map(({ text }) => ({ context: before, continuation: text }));
  const pairs = await encodePairs(tokenizer, requests);
  return pairs.map(({ context, continuation }) => ({ ids: [...context, ...continuation] }));
}

function requireFinite(id: string, nats: number): void {
  if (Number.isFinite(nats)) return;
  throw modelError(
    `statement ${id}`,
    `Σ log p of ${nats}`,
    "a finite number",
    "Check the training loss: NaN or infinite weights cause this.",
  );
}

export interface MarginOptions {
  /** A JSON or YAML file `{ variant: { affirm: [string], negate: [string] } }`, or rows as `readStatements` takes them. */
  readonly probes: string;
  /**
   * The context of every statement. Default `{ text: "" }`: the token that starts a text (begin-of-text, else end-of-text),
   * which is not scored. The statement follows a text directly, so end the text with a space. After a chat, the statement is the
   * assistant's reply, or continues its last message.
   */
  readonly before?: Prompt;
}

const isPrompt = (value: unknown): boolean =>
  isRecord(value) && ["text", "ids", "messages"].some((kind) => Object.hasOwn(value, kind));

export const marginShape = {
  probes: filledString("the path of a JSON or YAML file").meta({ fix: "Name the file of statements." }),
  before: z
    .custom<Prompt>(isPrompt, "{ text }, { ids } or { messages }")
    .meta({ fix: 'Remove `before` for { text: "" }.' })
    .optional(),
} satisfies Record<keyof MarginOptions, z.ZodType>;

/** One statement. */
export interface MarginRow extends Row {
  readonly variant: string;
  readonly side: Side;
  /** Σ log p of its tokens. */
  readonly nats: number;
  readonly tokens: number;
  /** Tokens of the context cut on the left to fit the model; null if the engine does not report it. */
  readonly truncatedTokens: number | null;
}

/** The metrics of `marginEvaluation`, each over all statements and per variant. */
function marginMetrics({ mean, ratio, contrast }: MetricKit<MarginRow>) {
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
}

/**
 * Keys at the snapshot's top level.
 *
 * @param statements All statements of the evaluation, including those that a smaller budget omitted.
 */
function marginPlainKeys(
  metrics: Readonly<Record<string, MetricValue>>,
  rows: readonly MarginRow[],
  statements: readonly Statement[],
): Readonly<Record<string, Json>> {
  const margins = [...new Set(rows.map(({ variant }) => variant))].map((variant) => {
    const hasVariant = (row: { readonly variant: string }) => row.variant === variant;
    const margin = {
      sum_nats: sumNats(rows.filter(hasVariant), statements.filter(hasVariant).length),
      per_statement: metrics[`margin/${variant}`]?.value ?? null,
      per_token: metrics[`margin_per_token/${variant}`]?.value ?? null,
    };
    return [variant, margin] as const;
  });
  return { margins: Object.fromEntries(margins), num_statements: rows.length };
}

/** Returns Σ nats of the affirming statements − Σ nats of the negating ones; null if statements are missing. */
function sumNats(rows: readonly MarginRow[], statements: number): number | null {
  if (rows.length !== statements) return null;
  return rows.reduce((sum, { side, nats }) => sum + (side === "affirm" ? nats : -nats), 0);
}
