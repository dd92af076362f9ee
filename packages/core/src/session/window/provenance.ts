import type { AnyEvaluation } from "../../contracts/evaluation.ts";
import type { Json } from "../../contracts/json.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";
import { hashJson } from "../../random/hash.ts";
import { createdBy } from "../records/new-snapshot.ts";
import type { Prepared } from "./prepare.ts";

/**
 * Returns everything needed to repeat a measurement except the weights, whose fingerprint is stored beside it. The hash is
 * therefore the same at every step of a phase, and in two phases with the same setup.
 */
export function provenanceOf(
  evaluation: AnyEvaluation,
  prepared: Prepared,
  seed: string,
): Snapshot["provenance"] {
  const { identity, contextLength, tokenizer } = prepared.target;
  const { weights: _, ...model } = identity;
  const facts = {
    items_hash: prepared.itemsHash,
    items: prepared.items.length,
    evaluation: evaluation.provenance?.() ?? null,
    model: { ...model, context_length: contextLength } as Json,
    tokenizer: tokenizer?.fingerprint ?? null,
    seed,
  };
  const { name, version } = evaluation;
  const hash = hashJson({ ...facts, name, version });
  return { hash, ...facts, created_by: createdBy };
}
