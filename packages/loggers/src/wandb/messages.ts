/** A command to the child process that runs the SDK. It replies to each with an `Answer`. */
export type Command =
  | {
      readonly kind: "open";
      readonly id: string;
      readonly project: string;
      /** Null: the API key's default entity. */
      readonly entity: string | null;
      readonly name: string | null;
      readonly config: Readonly<Record<string, unknown>>;
      readonly baseUrl: string;
      /** Number of lines known to be in the run; null for a new run. */
      readonly sent: number | null;
    }
  | { readonly kind: "log"; readonly lines: readonly Readonly<Record<string, unknown>>[] }
  | { readonly kind: "finish" };

export type Answer =
  /** `lines`: the number of lines in the run. */
  | { readonly kind: "done"; readonly lines: number }
  /** The child process ends. `isPermanent`: a retry would fail too. */
  | { readonly kind: "failed"; readonly message: string; readonly isPermanent: boolean };
