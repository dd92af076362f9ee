import {
  type MetricKit,
  type Json,
  type EvaluableModel,
  type Prompt,
  type MetricValue,
  PeriodicEvalError,
  hashJson,
} from "@periodic-eval/contracts";
import * as z from "zod";
import { encodePairs } from "../../model/encode-pair.ts";
import { parseOptions } from "@periodic-eval/contracts/options";
import { defineEvaluation } from "../kit/define.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import { nestedSubset } from "../kit/subset.ts";
import { marginMetrics, marginPlainKeys, type MarginRow } from "./metrics.ts";
import { marginShape, type MarginOptions } from "./options.ts";
import { readStatements, type Statement } from "./statements.ts";

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
  const { probes, before = { text: "" }, seed = 42 } = options;
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
        subsample: { n: null, seed },
      };
      all = statements;
      return nestedSubset(statements, { n: null, seed });
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
    throw new PeriodicEvalError({
      code: "model",
      where: "margin",
      got: `the model "${identity.name}", which has no tokenizer`,
      expected: "a model with the ability tokenizer",
      fix: "Use the prompts of another evaluation.",
    });
  }
  const requests = statements.map(({ text }) => ({ context: before, continuation: text }));
  const pairs = await encodePairs(tokenizer, requests);
  return pairs.map(({ context, continuation }) => ({ ids: [...context, ...continuation] }));
}

function requireFinite(id: string, nats: number): void {
  if (Number.isFinite(nats)) return;
  throw new PeriodicEvalError({
    code: "model",
    where: `statement ${id}`,
    got: `Σ log p of ${nats}`,
    expected: "a finite number",
    fix: "Check the training loss: NaN or infinite weights cause this.",
  });
}
