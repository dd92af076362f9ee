import {
  defineEvaluation,
  klToBase,
  PeriodicEvalError,
  type Ability,
  type AnyEvaluation,
  type EvaluableModel,
  type Json,
  type MetricKit,
  type NextTokenRequest,
  type Prompt,
  type Tokenizer,
  type ModelWith,
} from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { checkKeys } from "@periodic-eval/core/internal";
import type { KLRow } from "@periodic-eval/core/evaluations";

export interface KLToReferenceOptions {
  /** The evaluation whose prompts are looked at: one that tells them (`prompts`). */
  readonly of: AnyEvaluation;
  /** Any model of the same vocabulary: an earlier checkpoint, the model of another method. It is not disposed. */
  readonly reference: EvaluableModel;
  /** Only the prompts of its first so many items; default of all. */
  readonly limit?: number;
}

/**
 * How far a model is from another one, as `klToBase` tells it of a model and its base: the divergence of the distributions
 * of the next token, in nats, exact over the whole vocabulary, the mean over prompts. `kl_to_reference`, the primary metric,
 * is KL(model ‖ reference), `kl_from_reference` KL(reference ‖ model). Prompts are rendered by the model's own template, and
 * both read the same ids.
 *
 * @throws PeriodicEvalError `config` for an evaluation that does not tell its prompts; `model`, before anything is
 *   measured, for a reference that tells no next tokens or has another vocabulary, and where it cuts a prompt that the model
 *   reads whole.
 */
export function klToReference(options: KLToReferenceOptions): AnyEvaluation {
  checkKeys("klToReference", options, ["of", "reference", "limit"]);
  const { of, reference, limit } = options;
  const inner: AnyEvaluation = klToBase({ of, ...(limit !== undefined && { limit }) });
  checkReference(reference);
  return defineEvaluation({
    name: "kl_to_reference",
    version: "kl-to-reference-1",
    needs: inner.needs as readonly Ability[],
    ...(inner.wants !== undefined && { wants: inner.wants }),
    items(model) {
      checkVocabulary(model.tokenizer, reference);
      return inner.items(beside(model, reference));
    },
    provenance: () => provenanceOf(inner.provenance?.() ?? null, reference),
    measure: (model, items, context) => inner.measure(beside(model, reference), items, context),
    metrics: ({ mean }: MetricKit<KLRow>) => ({
      kl_to_reference: mean(({ nats }) => nats, { unit: "nats", primary: true }),
      kl_from_reference: mean(({ reverseNats }) => reverseNats, { unit: "nats" }),
    }),
    ...(inner.plainKeys !== undefined && { plainKeys: inner.plainKeys }),
  });
}

type Needed = ModelWith<"tokenizer" | "nextToken">;

/** The model, with the reference in the place of its base. */
function beside(model: Needed, reference: EvaluableModel): Needed {
  const ids = (prompt: Prompt): Prompt => {
    const isBegun = "messages" in prompt && prompt.messages.at(-1)?.role === "assistant";
    const rendered = model.tokenizer.render(prompt, { ending: isBegun ? "continue" : "generation" });
    // Of an empty prompt each engine knows what stands for it.
    return rendered.ids.length > 0 ? { ids: rendered.ids } : prompt;
  };
  const base: EvaluableModel = {
    identity: reference.identity,
    contextLength: reference.contextLength,
    async nextToken(requests: readonly NextTokenRequest[], call) {
      const asked = requests.map(({ prompt, candidates }) => ({ prompt: ids(prompt), candidates }));
      const answers = await reference.nextToken!(asked, call);
      answers.forEach(({ truncatedTokens }, at) => {
        const { prompt } = asked[at]!;
        const length = "ids" in prompt ? prompt.ids.length : 0;
        if (truncatedTokens > 0 && (model.contextLength ?? Infinity) > length - truncatedTokens)
          throw tooShort(reference, length);
      });
      return answers;
    },
  };
  // Read when asked, as the model itself does; and nothing is asked of it that an evaluation does not need.
  return new Proxy({} as Needed, {
    get(_, key) {
      if (key === "base") return base;
      const value: unknown = Reflect.get(model, key);
      return typeof value === "function" ? (value.bind(model) as unknown) : value;
    },
  });
}

function checkReference({ nextToken, tokenizer, identity }: EvaluableModel): void {
  if (nextToken !== undefined && tokenizer !== undefined) return;
  throw new PeriodicEvalError({
    code: "model",
    where: "klToReference.reference",
    got: `the model "${identity.name}", which tells no ${nextToken === undefined ? "next tokens" : "tokenizer"}`,
    expected: "a model with the abilities tokenizer and nextToken",
    fix: "Give a model in memory, or a server that returns the log-probs of chosen tokens.",
  });
}

/** Two templates over one vocabulary are no matter: both models read the same ids. */
function checkVocabulary(own: Tokenizer, { tokenizer, identity }: EvaluableModel): void {
  const other = tokenizer!;
  if (own.fingerprint === other.fingerprint) return;
  const word = (of: Tokenizer, id: number) => JSON.stringify(of.decode([id]));
  const differs =
    own.vocabSize === other.vocabSize
      ? Array.from({ length: own.vocabSize }, (_, id) => id).find((id) => word(own, id) !== word(other, id))
      : null;
  if (differs === undefined) return;
  throw new PeriodicEvalError({
    code: "model",
    where: "klToReference.reference",
    got:
      differs === null
        ? `a vocabulary of ${other.vocabSize} tokens in "${identity.name}"`
        : `the token ${differs} as ${word(other, differs)} in "${identity.name}"`,
    expected: differs === null ? `${own.vocabSize}, as the model's` : `${word(own, differs)}, as the model's`,
    fix: "Compare models of one vocabulary: a divergence is over the same tokens.",
  });
}

function tooShort({ identity, contextLength }: EvaluableModel, length: number): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "model",
    where: "klToReference.reference",
    got: `a prompt of ${length} tokens, of which "${identity.name}" reads the last ${contextLength ?? "few"}`,
    expected: "one that both models read alike",
    fix: "Choose shorter prompts, or fewer examples before them.",
  });
}

/** What chooses or shows items stays at the top, as `klToBase` has it. */
function provenanceOf(inner: Json, { identity, tokenizer }: EvaluableModel): Json {
  const { name, engine, dtype, weights, adapter, details = null } = identity;
  const reference = { name, engine, dtype, weights, adapter, details };
  const shown = { ...reference, tokenizer: tokenizer!.fingerprint };
  return {
    ...(inner as { readonly [key: string]: Json }),
    reference: shown,
    reference_hash: hashJson(shown),
  };
}
