/** Where the session's owners report problems. */
export interface Reporter {
  warn(where: string, message: string): void;
  /** Keeps an error for the session's caller, if `onFailure` is `"throw"`. */
  fail(error: unknown): void;
}
