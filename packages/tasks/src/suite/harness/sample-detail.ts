import type { Json } from "@periodic-eval/core";

/** What lm-evaluation-harness' samples tell of a document beside its scores. */
export interface SampleDetail {
  /** Index from 0 of the document in its split, that of its subject where the task has some; null for what is no document. */
  readonly docId: number | null;
  /** The document, with the keys of the data set. */
  readonly doc: Json;
  readonly target: Json;
  /** By request: context and continuation, or prompt and generation settings. */
  readonly arguments: readonly (readonly Json[])[];
  /** By request, by repeat: a text, or log-likelihood and whether it is greedy. */
  readonly responses: readonly Json[];
  /** By filter, by request: what the filter made of the responses. */
  readonly filtered: Readonly<Record<string, readonly Json[]>>;
}
