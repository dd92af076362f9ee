import {
  PeriodicEvalError,
  type Json,
  type Abilities,
  type BulkTokenizer,
  type CallOptions,
  type EvaluableModel,
  type NextToken,
  type NextTokenRequest,
  type Prompt,
  type ModelWith,
  hashJson,
} from "@periodic-eval/contracts";
import { renderAll } from "../../model/encode-pair.ts";

type MeasuredModel = ModelWith<"tokenizer" | "nextToken">;

/** The distribution that the measured model is compared with. */
export interface Against {
  /** Names the evaluation and its metrics: `kl_to_base`, `kl_from_reference`. */
  readonly name: "base" | "reference";
  /** Returns the part of the provenance that describes the distribution, after `check`. */
  provenance(): { readonly [key: string]: Json };
  /** @throws PeriodicEvalError `model`, before step 1, for a model that cannot be compared. */
  check(model: MeasuredModel): void | Promise<void>;
  /** Returns the prompts as the reference reads them, for all calls of `nextToken`. */
  promptsFor(model: MeasuredModel, prompts: readonly Prompt[]): Promise<readonly Prompt[]>;
  nextToken(
    model: MeasuredModel,
    requests: readonly NextTokenRequest[],
    options: CallOptions,
  ): Promise<readonly NextToken[]>;
}

export const againstBase: Against = {
  name: "base",
  provenance: () => ({}),
  check: (model) => void baseOf(model),
  promptsFor: async (_, prompts) => prompts,
  nextToken: (model, requests, options) => baseOf(model).nextToken(requests, options),
};

function baseOf({ base, identity }: MeasuredModel): Pick<Abilities, "nextToken"> {
  if (base?.nextToken !== undefined) return base as Pick<Abilities, "nextToken">;
  throw new PeriodicEvalError({
    code: "model",
    where: "klEvaluation",
    got: `the model "${identity.name}", which has no base${base === undefined ? "" : " with the ability nextToken"}`,
    expected: "a model that can run without its adapter",
    fix: 'Train an adapter (LoRA) instead of all weights, and do not measure on: "base".',
  });
}

/**
 * Another model. Prompts are rendered by the measured model's template, and both models read the same ids.
 *
 * @throws PeriodicEvalError `model` for a reference without `tokenizer` or `nextToken`.
 */
export function againstModel(reference: EvaluableModel): Against {
  const { tokenizer, nextToken, identity } = reference;
  if (tokenizer === undefined || nextToken === undefined)
    throw wrongReference({
      got: `the model "${identity.name}", which has no ${nextToken === undefined ? "nextToken" : "tokenizer"}`,
      expected: "a model with the abilities tokenizer and nextToken",
      fix: "Use a model in memory, or a server that returns the log-probabilities of given tokens.",
    });
  return {
    name: "reference",
    provenance() {
      // Read late: a model in memory takes its engine from the backend, and a reference may still load its weights.
      const { name, engine, dtype, weights, adapter, details = null } = reference.identity;
      const shown = { name, engine, dtype, weights, adapter, details, tokenizer: tokenizer.fingerprint };
      return { reference: shown, reference_hash: hashJson(shown) };
    },
    check: (model) => checkVocabulary(model.tokenizer, tokenizer, identity.name),
    /** Each engine has its own token for an empty prompt, so an empty prompt stays as it is. */
    async promptsFor(model, prompts) {
      const rendered = await renderAll(model.tokenizer, prompts);
      return rendered.map(({ ids }, at) => (ids.length > 0 ? { ids } : prompts[at]!));
    },
    async nextToken(model, requests, options) {
      const answers = await reference.nextToken!(requests, options);
      answers.forEach(({ truncatedTokens }, at) => {
        const { prompt } = requests[at]!;
        const length = "ids" in prompt ? prompt.ids.length : 0;
        if (truncatedTokens > 0 && (model.contextLength ?? Infinity) > length - truncatedTokens)
          throw tooShort(reference, length);
      });
      return answers;
    },
  };
}

/** Requires the same tokens. Chat templates may differ: both models read the same ids. */
async function checkVocabulary(own: BulkTokenizer, other: BulkTokenizer, name: string): Promise<void> {
  if (own.fingerprint === other.fingerprint) return;
  const fix = "Compare models with the same vocabulary: a divergence is a sum over the same tokens.";
  if (own.vocabSize !== other.vocabSize)
    throw wrongReference({
      got: `a vocabulary of ${other.vocabSize} tokens in "${name}"`,
      expected: `${own.vocabSize}, as in the measured model`,
      fix,
    });
  const rows = Array.from({ length: own.vocabSize }, (_, id) => [id]);
  const [expected, got] = await Promise.all([own.decode(rows), other.decode(rows)]);
  const id = expected.findIndex((text, at) => text !== got[at]);
  if (id < 0) return;
  throw wrongReference({
    got: `the token ${id} as ${JSON.stringify(got[id])} in "${name}"`,
    expected: `${JSON.stringify(expected[id])}, as in the measured model`,
    fix,
  });
}

const tooShort = ({ identity, contextLength }: EvaluableModel, length: number) =>
  wrongReference({
    got: `a prompt of ${length} tokens, of which "${identity.name}" reads the last ${contextLength ?? "few"}`,
    expected: "a prompt that both models read to the same extent",
    fix: "Choose shorter prompts, or fewer examples before them.",
  });

const wrongReference = (details: { got: string; expected: string; fix: string }) =>
  new PeriodicEvalError({
    code: "model",
    where: "klEvaluation options.against",
    path: ["against"],
    ...details,
  });
