import { namePattern } from "../contracts/snapshot.ts";
import type { PeriodicEvalError, ValuePath } from "../errors.ts";
import { configError } from "./config-error.ts";

/** Names in a run's folder besides those of phases. File systems may ignore case, so any case of them is taken. */
export const reservedPhases = ["superseded", "index.jsonl"];

const fix =
  "Use letters, digits, dots, dashes and underscores, and begin with a letter or a digit: the name becomes a file name.";

/**
 * Checks a name that becomes a file name: `../other` would leave the run's folder.
 *
 * @param path The place of the name within the options `where`.
 * @throws PeriodicEvalError `config`.
 */
export function checkName(where: string, name: unknown, path: ValuePath = []): void {
  if (typeof name === "string" && namePattern.test(name)) return;
  throw nameError({ where, path, value: name, except: "", fix });
}

/**
 * Checks the name of a phase, which becomes a folder.
 *
 * @param path The place of the name within the options `where`.
 * @throws PeriodicEvalError `config`, also for names that the store uses itself (`superseded`).
 */
export function checkPhaseName(where: string, phase: unknown, path: ValuePath = []): void {
  const isTaken = typeof phase === "string" && reservedPhases.includes(phase.toLowerCase());
  if (typeof phase === "string" && namePattern.test(phase) && !isTaken) return;
  const except = ` other than ${reservedPhases.join(", ")}`;
  throw nameError({ where, path, value: phase, except, fix: isTaken ? "Rename the phase." : fix });
}

function nameError({
  except,
  ...details
}: {
  readonly where: string;
  readonly path: ValuePath;
  readonly value: unknown;
  readonly except: string;
  readonly fix: string;
}): PeriodicEvalError {
  return configError({ ...details, expected: `a name that matches ${namePattern.source}${except}` });
}
