import {
  PeriodicEvalError,
  type Json,
  type Abilities,
  type CallOptions,
  type EvaluableModel,
  type NextToken,
  type NextTokenRequest,
  type Prompt,
  type Tokenizer,
  type ModelWith,
  hashJson,
} from "@periodic-eval/contracts";
import { endingOf } from "../../model/encode-pair.ts";

type MeasuredModel = ModelWith<"tokenizer" | "nextToken">;

/** The distribution that the measured model is compared with. */
export interface Against {
  /** Names the evaluation and its metrics: `kl_to_base`, `kl_from_reference`. */
  readonly name: "base" | "reference";
  /** Returns the part of the provenance that describes the distribution, after `check`. */
  provenance(): { readonly [key: string]: Json };
  /** @throws PeriodicEvalError `model`, before step 1, for a model that cannot be compared. */
  check(model: MeasuredModel): void;
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
    async nextToken(model, requests, options) {
      const rendered = requests.map(({ prompt, candidates }) => ({
        prompt: toIds(model.tokenizer, prompt),
        candidates,
      }));
      const answers = await reference.nextToken!(rendered, options);
      answers.forEach(({ truncatedTokens }, at) => {
        const { prompt } = rendered[at]!;
        const length = "ids" in prompt ? prompt.ids.length : 0;
        if (truncatedTokens > 0 && (model.contextLength ?? Infinity) > length - truncatedTokens)
          throw tooShort(reference, length);
      });
      return answers;
    },
  };
}

/** Each engine has its own token for an empty prompt, so an empty prompt stays as it is. */
function toIds(tokenizer: Tokenizer, prompt: Prompt): Prompt {
  const { ids } = tokenizer.render(prompt, { ending: endingOf(prompt) });
  return ids.length > 0 ? { ids } : prompt;
}

/** Requires the same tokens. Chat templates may differ: both models read the same ids. */
function checkVocabulary(own: Tokenizer, other: Tokenizer, name: string): void {
  if (own.fingerprint === other.fingerprint) return;
  const quoted = (tokenizer: Tokenizer, id: number) => JSON.stringify(tokenizer.decode([id]));
  const fix = "Compare models with the same vocabulary: a divergence is a sum over the same tokens.";
  if (own.vocabSize !== other.vocabSize)
    throw wrongReference({
      got: `a vocabulary of ${other.vocabSize} tokens in "${name}"`,
      expected: `${own.vocabSize}, as in the measured model`,
      fix,
    });
  for (let id = 0; id < own.vocabSize; id++) {
    const [expected, got] = [quoted(own, id), quoted(other, id)];
    if (expected === got) continue;
    throw wrongReference({
      got: `the token ${id} as ${got} in "${name}"`,
      expected: `${expected}, as in the measured model`,
      fix,
    });
  }
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
