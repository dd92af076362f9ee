/** What code may hand out: nothing with a prototype that it could have changed. */
export type SandboxValue = number | string | boolean | null;

export interface SandboxLimits {
  /** Of all that runs, together. */
  readonly seconds: number;
  readonly memoryMegabytes: number;
  readonly stackKilobytes: number;
  /** Of one text that is handed out, in UTF-16 units. */
  readonly textLength: number;
}

export interface SandboxOrder {
  readonly code: string;
  /** Evaluated one after the other once the code has run. */
  readonly expressions: readonly string[];
  readonly limits: SandboxLimits;
}

/** `ready` once the engine is loaded: the time of the order is counted from there. */
export type SandboxAnswer =
  | { readonly kind: "ready" }
  | { readonly kind: "values"; readonly values: readonly SandboxValue[] }
  | { readonly kind: "failed"; readonly reason: string };
