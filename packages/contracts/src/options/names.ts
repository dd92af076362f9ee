import { namePattern } from "../snapshot.ts";
import type { ValuePath } from "../errors.ts";
import { configError } from "./config-error.ts";

/** Names in a run's folder besides those of phases. File systems may ignore case, so any case of them is taken. */
const reservedPhases = ["superseded", "index.jsonl"];

export const nameRule = `a name that matches ${namePattern.source}`;
export const phaseRule = `${nameRule} other than ${reservedPhases.join(", ")}`;
export const nameFix =
  "Use letters, digits, dots, dashes and underscores, and begin with a letter or a digit: the name becomes a file name.";

const isName = (value: unknown): value is string => typeof value === "string" && namePattern.test(value);
const isReserved = (value: unknown): boolean =>
  typeof value === "string" && reservedPhases.includes(value.toLowerCase());

export const isPhaseName = (value: unknown): value is string => isName(value) && !isReserved(value);

/**
 * Checks a name that becomes a file name: `../other` would leave the run's folder.
 *
 * @param path The place of the name within the options `where`.
 * @throws PeriodicEvalError `config`.
 */
export function checkName(where: string, value: unknown, path: ValuePath = []): void {
  if (!isName(value)) throw configError({ where, path, value, expected: nameRule, fix: nameFix });
}

/**
 * Checks the name of a phase, which becomes a folder.
 *
 * @param path The place of the name within the options `where`.
 * @throws PeriodicEvalError `config`, also for names that the store uses itself (`superseded`).
 */
export function checkPhaseName(where: string, value: unknown, path: ValuePath = []): void {
  const fix = isReserved(value) ? "Rename the phase." : nameFix;
  if (!isPhaseName(value)) throw configError({ where, path, value, expected: phaseRule, fix });
}
