import { namePattern } from "../contracts/snapshot.ts";
import { quoteValue } from "./quote-value.ts";
import { PeriodicEvalError } from "../errors.ts";

/** What a run's folder has beside the folders of its phases; file systems that ignore case make one of both. */
export const reservedPhases = ["superseded", "index.jsonl"];

const fix =
  "Use letters, digits, dots, dashes and underscores, beginning with a letter or a digit: it becomes a file name.";

/**
 * Refuses what cannot stand in a file name: `../other` would leave the run's folder.
 *
 * @throws PeriodicEvalError `config` at `where`.
 */
export function checkName(where: string, name: unknown): void {
  if (typeof name === "string" && namePattern.test(name)) return;
  throw wrong(where, name, "", fix);
}

/**
 * `checkName` for a phase, whose name is also that of a folder.
 *
 * @throws PeriodicEvalError `config` at `where`, also for the names that the store has taken (`superseded`).
 */
export function checkPhaseName(where: string, phase: unknown): void {
  const isTaken = typeof phase === "string" && reservedPhases.includes(phase.toLowerCase());
  if (typeof phase === "string" && namePattern.test(phase) && !isTaken) return;
  throw wrong(where, phase, ` other than ${reservedPhases.join(", ")}`, isTaken ? "Rename the phase." : fix);
}

function wrong(where: string, got: unknown, but: string, how: string): PeriodicEvalError {
  const expected = `a name that matches ${namePattern.source}${but}`;
  return new PeriodicEvalError({ code: "config", where, got: quoteValue(got), expected, fix: how });
}
