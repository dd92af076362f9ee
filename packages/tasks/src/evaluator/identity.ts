import type { EvaluableModel, Json } from "@periodic-eval/core";
import type { OpenTask } from "../suite/open-tasks.ts";
import type { CallSampling } from "../families/evaluate-options.ts";
import type { Suite } from "../suite/suite-file.ts";

/** The measured model. */
export interface Subject {
  readonly model: EvaluableModel;
  /** The name in results: the path as given. */
  readonly name: string;
  readonly adapter: string | null;
  /** Hash of all weights; null if unknown. */
  readonly fingerprint: string | null;
}

/** The part of a run's identity that is known without weights and documents. */
export type SubjectFacts = ReturnType<typeof factsOf>;

/** Returns the model's settings and its tokenizer. */
export const factsOf = ({ model, adapter }: Pick<Subject, "model" | "adapter">) => {
  const { identity, contextLength, tokenizer } = model;
  return {
    model: {
      name: identity.name,
      engine: identity.engine,
      dtype: identity.dtype,
      details: identity.details ?? null,
      context_length: contextLength,
    },
    // The model's identity goes first, because a path can be written in several ways.
    adapter: identity.adapter ?? adapter,
    tokenizer: tokenizer?.fingerprint ?? null,
  };
};

/** Returns everything that changes a number of a run. */
export function identityOf(
  subject: Subject,
  suite: Suite & { readonly sampling?: CallSampling },
  tasks: readonly OpenTask[],
): Json {
  const { model, adapter, tokenizer } = factsOf(subject);
  return {
    model: { ...model, weights: subject.fingerprint },
    adapter,
    tokenizer,
    smoke: suite.smoke,
    seed: suite.seed,
    fewshot_seed: suite.fewshot_seed,
    ...(suite.sampling && { sampling: { ...suite.sampling } }),
    tasks: Object.fromEntries(
      tasks.map(({ name: task, version, settings, itemsHash, provenance }) => [
        task,
        { version, ...settings, items: itemsHash, evaluation: provenance },
      ]),
    ),
  };
}
