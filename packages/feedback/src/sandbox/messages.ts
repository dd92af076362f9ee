/** A value that leaves the sandbox. Objects stay inside, because the code may have changed their prototypes. */
export type SandboxValue = number | string | boolean | null;

export interface SandboxLimits {
  /** Total seconds for the code and all expressions. */
  readonly seconds: number;
  /** Total memory of all values of the code. */
  readonly memoryMegabytes: number;
  readonly stackKilobytes: number;
  /** Maximum length of one returned string, in UTF-16 units. */
  readonly textLength: number;
}

export interface SandboxRequest {
  readonly code: string;
  /** Evaluated in order, after the code has run. */
  readonly expressions: readonly string[];
  readonly limits: SandboxLimits;
}

/** `ready`: the engine is loaded, and the time limit of the request starts. */
export type SandboxReply =
  | { readonly kind: "ready" }
  | { readonly kind: "values"; readonly values: readonly SandboxValue[] }
  | { readonly kind: "failed"; readonly reason: string };
