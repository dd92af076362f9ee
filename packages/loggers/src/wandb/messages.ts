/** What the process that holds the SDK is told; it answers each with `Answer`. */
export type Order =
  | {
      readonly kind: "open";
      readonly id: string;
      readonly project: string;
      /** Null for the key's own. */
      readonly entity: string | null;
      readonly name: string | null;
      readonly config: Readonly<Record<string, unknown>>;
      readonly baseUrl: string;
      /** Lines known to be there; null for a new run. */
      readonly sent: number | null;
    }
  | { readonly kind: "log"; readonly lines: readonly Readonly<Record<string, unknown>>[] }
  | { readonly kind: "finish" };

export type Answer =
  /** `lines`: how many the run holds. */
  | { readonly kind: "done"; readonly lines: number }
  /** The process ends; `isFinal` where another try would fare no better. */
  | { readonly kind: "failed"; readonly message: string; readonly isFinal: boolean };
