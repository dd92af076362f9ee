/**
 * The kind of error, for `switch`. Stable across versions.
 *
 * | code | meaning |
 * |---|---|
 * | `config` | an option or a configuration is wrong |
 * | `data` | a row or a file of the user's data is wrong |
 * | `model` | the model cannot do what was requested, or its numbers cannot be trusted |
 * | `memory` | the engine has too little memory for the work |
 * | `judge` | a judge model cannot be reached or fails too often |
 * | `store` | a file of the run cannot be read or written |
 * | `receipt` | a measurement disturbed the training |
 * | `deadline` | a time limit has passed |
 * | `aborted` | a signal aborted the work |
 */
export type ErrorCode =
  | "config"
  | "data"
  | "model"
  | "memory"
  | "judge"
  | "store"
  | "receipt"
  | "deadline"
  | "aborted";

/** Keys of objects and indexes of arrays that lead from a value to a part of it. */
export type ValuePath = readonly (string | number)[];

/** An option that names a file or a dataset. */
export interface SourceOption {
  /** Its place, for errors: `alignment options.questions`. */
  readonly where: string;
  /** Its path within the options: `["questions"]`. */
  readonly path: ValuePath;
  /** Whether a command downloads the source, and thus reads no file. Default: false. */
  readonly isDownload?: boolean;
}

/** A fact about an error that code decides by, besides its `code`. Messages are for people: no code reads them. */
export type ErrorDetail =
  /** The user interrupted the command. */
  | { readonly kind: "interrupted" }
  /** A service rejected a request with this HTTP status. */
  | { readonly kind: "http"; readonly status: number }
  /** A chat was rendered by a tokenizer that has no chat template. */
  | { readonly kind: "no-template" }
  /** The browser allows this page no storage. Files can stay in memory. */
  | { readonly kind: "no-storage" }
  /** A dataset is neither in the cache nor available from the hub, for this reason: `HF_HUB_OFFLINE`. */
  | { readonly kind: "not-cached"; readonly reason: string };

export interface ErrorDetails {
  readonly code: ErrorCode;
  /** The place: a file and line, an option's path, a function. */
  readonly where: string;
  /** Keys and indexes that lead to the wrong value within the checked options, block or file. Default: empty. */
  readonly path?: ValuePath;
  /** The place within what the value at `path` names: the line of a file. Default: null. */
  readonly inside?: string | null;
  /** Whether `path` is that of an object which the user wrote, such as a file or flags. Default: false. */
  readonly isWritten?: boolean;
  /** The wrong thing: a quoted value or a description. */
  readonly got: string;
  /** A noun phrase for the right thing. */
  readonly expected: string;
  /** One imperative sentence that tells the reader how to correct the error. */
  readonly fix: string;
  readonly cause?: unknown;
  /** Default: null. */
  readonly detail?: ErrorDetail | null;
}

const brand = Symbol.for("periodic-eval.error");

/** The one error class of the project. Its message reads `[periodic-eval] <where>: got X, expected Y. <fix>`. */
export class PeriodicEvalError extends Error {
  readonly [brand] = true;
  readonly code: ErrorCode;
  readonly where: string;
  readonly path: ValuePath;
  readonly inside: string | null;
  readonly isWritten: boolean;
  readonly got: string;
  readonly expected: string;
  readonly fix: string;
  readonly detail: ErrorDetail | null;

  constructor({ code, where, path = [], got, expected, fix, cause, detail = null, ...rest }: ErrorDetails) {
    super(
      `[periodic-eval] ${where}: got ${got}, expected ${expected}. ${fix}`,
      cause === undefined ? undefined : { cause },
    );
    this.name = "PeriodicEvalError";
    this.code = code;
    this.where = where;
    this.path = path;
    this.inside = rest.inside ?? null;
    this.isWritten = rest.isWritten ?? false;
    this.got = got;
    this.expected = expected;
    this.fix = fix;
    this.detail = detail;
  }

  /** Whether `error` is a PeriodicEvalError (of this `code`), even one thrown by a second installed copy of the package. */
  static is(error: unknown, code?: ErrorCode): error is PeriodicEvalError {
    return (
      error instanceof Error &&
      brand in error &&
      (code === undefined || (error as PeriodicEvalError).code === code)
    );
  }
}
