import type { Guard } from "@periodic-eval/contracts";

export interface FakeGuardOptions {
  /** Default: `fake`. A guard named `weights` provides the snapshot's fingerprint. */
  readonly name?: string;
  readonly around?: "windows" | "hooks";
  readonly advisory?: boolean;
  /** Returns the observed state on entering and on leaving, or null for "not observed". Default: always `same`. */
  readonly observe?: () => string | null;
  /** Called on every entering and leaving, for tests of their order. */
  readonly log?: (event: `enter ${string}` | `leave ${string}`) => void;
}

/** Returns a guard that compares `observe` before and after, and restores nothing. */
export function fakeGuard(options: FakeGuardOptions = {}): Guard {
  const { name = "fake", around, advisory, observe = () => "same", log } = options;
  return {
    name,
    ...(around !== undefined && { around }),
    ...(advisory !== undefined && { advisory }),
    enter() {
      log?.(`enter ${name}`);
      const before = observe();
      return {
        before,
        leave() {
          log?.(`leave ${name}`);
          const after = observe();
          const intact = before === null || after === null ? null : before === after;
          return { part: name, before, after, intact, ...(advisory === true && { advisory }) };
        },
      };
    },
  };
}
