import { PeriodicEvalError } from "@periodic-eval/core";
import { quoteValue } from "@periodic-eval/core/internal";

/** The parameters of a request. */
export interface Query {
  /** Path relative to the served folder; empty for that folder. */
  readonly resultsDir: string;
  /** 1-based. */
  readonly page: number;
  readonly perPage: number;
  /** Whether the address has `page` or `per_page`. */
  readonly isPaged: boolean;
  /** Whether the tables of one run show all rows. */
  readonly showsAllRows: boolean;
}

const maxPerPage = 200;
const defaultPerPage = 20;

/**
 * Parses the parameters of an address.
 *
 * @param given The values of each parameter.
 * @throws PeriodicEvalError `config` for a wrong or repeated parameter.
 */
export function parseQuery(given: Readonly<Record<string, readonly string[]>>): Query {
  const valueOf = (key: string): string | null => {
    const values = Object.hasOwn(given, key) ? given[key]! : [];
    if (values.length > 1) throw parameterError(key, `${values.length} values`, "one");
    return values[0] ?? null;
  };
  const numberOf = (key: string, fallback: number, max: number): number => {
    const text = valueOf(key);
    if (text === null) return fallback;
    const value = Number(text);
    const expected = max === Infinity ? "a positive integer" : `an integer from 1 to ${max}`;
    if (!/^\d{1,9}$/.test(text) || value < 1 || value > max)
      throw parameterError(key, quoteValue(text), expected);
    return value;
  };
  checkNames(given, ["results_dir", "page", "per_page", "steps"]);
  const steps = valueOf("steps");
  if (steps !== null && steps !== "all") throw parameterError("steps", quoteValue(steps), '"all"');
  return {
    resultsDir: valueOf("results_dir") ?? "",
    page: numberOf("page", 1, Infinity),
    perPage: numberOf("per_page", defaultPerPage, maxPerPage),
    isPaged: valueOf("page") !== null || valueOf("per_page") !== null,
    showsAllRows: steps === "all",
  };
}

/** Parses the parameters of a client that follows a folder. `since` is the version that it has; null if it has none. */
export function parseFollow({ since, ...given }: Readonly<Record<string, readonly string[]>>): {
  readonly resultsDir: string;
  readonly since: string | null;
} {
  checkNames(given, ["results_dir"]);
  if (since !== undefined && since.length > 1) throw parameterError("since", `${since.length} values`, "one");
  return { resultsDir: parseQuery(given).resultsDir, since: since?.[0] ?? null };
}

function checkNames(given: Readonly<Record<string, unknown>>, known: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw parameterError("parameters", quoteValue(unknown), `only ${known.join(", ")}`);
}

const parameterError = (where: string, got: string, expected: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "config",
    where,
    path: [where],
    got,
    expected,
    fix: "Correct this parameter in the address.",
  });

/** Returns a relative address with the given parameters. */
export function addressOf({
  resultsDir,
  page = 1,
  perPage = defaultPerPage,
  showsAllRows = false,
}: Partial<Query>): string {
  const query = new URLSearchParams();
  if (resultsDir) query.set("results_dir", resultsDir);
  if (page !== 1) query.set("page", String(page));
  if (perPage !== defaultPerPage) query.set("per_page", String(perPage));
  if (showsAllRows) query.set("steps", "all");
  return `?${query.toString()}`;
}
