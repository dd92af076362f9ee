import type { Json, Row } from "@periodic-eval/core";
import type { Task } from "./types.ts";

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

/**
 * A task that can tell of its rows what lm-evaluation-harness' samples tell. What it does not tell is what its family does
 * (`familyDetail`); of an evaluation that is of no such family samples hold item, prompt and row.
 */
export interface SampledTask extends Task {
  readonly sample?: (row: Row, item: Row) => Partial<SampleDetail>;
}
