import type { BudgetLimit, Snapshot } from "../contracts/snapshot.ts";
import { isRecord } from "../internal/is-record.ts";
import { snakeCase } from "../internal/written-key.ts";

/** Names that clients give to engines behind HTTP: `openai`, `anthropic`, `openai-compatible at HOST`, `http at HOST`. */
const servedEngine = /^(openai|anthropic)$|^\S+ at \S+$/;

/** Returns the grace that the budget of a phase left, as its last measurement states it: `60 s`; null if none does. */
export function graceOf(phase: readonly Pick<Snapshot, "timing">[]): string | null {
  const found = phase.flatMap(({ timing }) => /\bgrace of (\S+ s)\b/.exec(timing.governor)?.[1] ?? []);
  return found.at(-1) ?? null;
}

/**
 * Returns two facts that snapshots before 2026-11-23 state only in text: the limit in `timing.governor`, and the server in the
 * engine's name. Later snapshots have the fields `timing.budget` and `served`.
 */
export function factsInWords({
  timing: { governor },
  provenance: { model },
}: Pick<Snapshot, "timing" | "provenance">): Pick<Snapshot["timing"], "budget"> & {
  readonly served: boolean;
} {
  const engine: unknown = isRecord(model) ? (model as Readonly<Record<string, unknown>>)["engine"] : null;
  const [, option] = /\(budget\.(graceSeconds|overheadPercent|secondsPerWindow)\)/.exec(governor) ?? [];
  return {
    served: typeof engine === "string" && servedEngine.test(engine),
    ...(option !== undefined && {
      budget: {
        limit: snakeCase(option) as BudgetLimit,
        reduced: !governor.startsWith("whole:"),
      },
    }),
  };
}
