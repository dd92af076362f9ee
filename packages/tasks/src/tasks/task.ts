import type { AnyEvaluation, Json, Row } from "@periodic-eval/core";
import type { Subsample } from "@periodic-eval/core/evaluations";

/** How a prompt is put into a chat; left out: plain text, as lm-evaluation-harness without `--apply_chat_template`. */
export interface ChatOptions {
  /** The text of the system message; left out: none is passed. */
  readonly system?: string;
  /** Each example a user and an assistant turn, in place of one user turn with all. Default true. */
  readonly fewshotAsMultiturn?: boolean;
}

/** What every task takes. */
export interface TaskOptions {
  /**
   * Where its documents are: a folder as `../shared/data/<task>` lays it out, a file, or `hf:owner/dataset` on the
   * Hugging Face hub.
   */
  readonly data: string;
  /** Solved examples before each question; the task's own number by default. */
  readonly shots?: number;
  /** The file that examples are drawn from; the task's own pool under `data` by default. */
  readonly fewshotPool?: string;
  /** Seed of Python's `Random` by which examples are drawn; default 1234, as lm-evaluation-harness. */
  readonly fewshotSeed?: number;
  /** The first so many documents of each subject, in the file's order; null (default) for all. */
  readonly limit?: number | null;
  /** A seeded, nested subset of what `limit` leaves, for use in the loop; null (default) for all. */
  readonly subsample?: Subsample;
  /** Left out: no chat template. */
  readonly chat?: ChatOptions;
}

/** A benchmark as the field knows it: one definition for a callback, an `Evaluator` and the command line. */
export interface Task {
  /** As lm-evaluation-harness names it: `arc_challenge`. */
  readonly name: string;
  /** The version of lm-evaluation-harness' task that it equals. */
  readonly version: string;
  /** What `shots` is where it is not given. */
  readonly defaultShots: number;
  /**
   * Metrics are named as lm-evaluation-harness names them, filter included where it is not `none`: `acc`, `acc_norm`,
   * `exact_match,strict-match`; groups follow a slash: `acc/stem`.
   *
   * @throws PeriodicEvalError `config` for a wrong option; bad documents throw at `items`.
   */
  readonly open: (options: TaskOptions) => AnyEvaluation;
  /** Settings of the task itself that results tell of: generation, filters. */
  readonly settings?: Readonly<Record<string, Json>>;
}

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
