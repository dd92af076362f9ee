import { PeriodicEvalError } from "@periodic-eval/core";
import { quoteValue } from "@periodic-eval/core/internal";

/** What an address asks for. */
export interface Query {
  /** From the folder that is served; empty for that folder. */
  readonly resultsDir: string;
  /** From 1. */
  readonly page: number;
  readonly perPage: number;
  /** Whether tables of one run are shown whole. */
  readonly isWhole: boolean;
}

const mostPerPage = 200;
const perPageDefault = 20;

/**
 * @param given the values of each key
 * @throws PeriodicEvalError `config` that says what is expected
 */
export function parseQuery(given: Readonly<Record<string, readonly string[]>>): Query {
  const valueOf = (key: string): string | null => {
    const values = Object.hasOwn(given, key) ? given[key]! : [];
    if (values.length > 1) throw wrong(key, `${values.length} values`, "one");
    return values[0] ?? null;
  };
  const numberOf = (key: string, otherwise: number, most: number): number => {
    const text = valueOf(key);
    if (text === null) return otherwise;
    const value = Number(text);
    const expected = most === Infinity ? "a whole number from 1" : `a whole number from 1 to ${most}`;
    if (!/^\d{1,9}$/.test(text) || value < 1 || value > most) throw wrong(key, quoteValue(text), expected);
    return value;
  };
  const steps = valueOf("steps");
  if (steps !== null && steps !== "all") throw wrong("steps", quoteValue(steps), '"all"');
  return {
    resultsDir: valueOf("results_dir") ?? "",
    page: numberOf("page", 1, Infinity),
    perPage: numberOf("per_page", perPageDefault, mostPerPage),
    isWhole: steps === "all",
  };
}

const wrong = (where: string, got: string, expected: string): PeriodicEvalError =>
  new PeriodicEvalError({ code: "config", where, got, expected, fix: "Correct the address." });

/** The address of the same page with other values, from any page of the server. */
export function addressOf({
  resultsDir,
  page = 1,
  perPage = perPageDefault,
  isWhole = false,
}: Partial<Query>): string {
  const query = new URLSearchParams();
  if (resultsDir) query.set("results_dir", resultsDir);
  if (page !== 1) query.set("page", String(page));
  if (perPage !== perPageDefault) query.set("per_page", String(perPage));
  if (isWhole) query.set("steps", "all");
  return `?${query.toString()}`;
}
