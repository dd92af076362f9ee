import type { Guard } from "../contracts/guard.ts";

export interface FakeGuardOptions {
  /** Default `fake`. `weights` gives the snapshot its fingerprint. */
  readonly name?: string;
  readonly around?: "windows" | "hooks";
  readonly advisory?: boolean;
  /** What it observes, asked on entering and on leaving; null is "not observed". Default: always `same`. */
  readonly observe?: () => string | null;
  /** Told of every entering and leaving, for tests of their order. */
  readonly log?: (event: `enter ${string}` | `leave ${string}`) => void;
}

/** A guard that compares what `observe` says before and after, and restores nothing. */
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
