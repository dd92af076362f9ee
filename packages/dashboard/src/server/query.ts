import { type PeriodicEvalError } from "@periodic-eval/core";
import { quoteValue, configError } from "@periodic-eval/contracts/options";

/** The parameters of a request. */
export interface Query {
  /** Path relative to the served folder; empty for that folder. */
  readonly resultsDir: string;
  /** 1-based. */
  readonly page: number;
  readonly perPage: number;
  /** Whether the tables of one run show all rows. */
  readonly showsAllRows: boolean;
  /** Whether the page of a run waits until all files are read and verified, however many there are. */
  readonly isWhole: boolean;
  /** The answers that the script of a page requests; null for a page. */
  readonly answers: AnswersQuery | null;
  /** Paths of the runs to compare; null for another page. */
  readonly runs: readonly string[] | null;
}

/** Most runs in a comparison: more lines cannot be distinguished. */
export const maxRuns = 10;

/** Which answers of a run to send. */
export interface AnswersQuery {
  /** Null: all measurements, without rows. */
  readonly of: { readonly phase: string; readonly id: string; readonly step: number } | null;
  /** 0-based. */
  readonly first: number;
  readonly count: number;
  /** Whether rows of a large file may be sent before they are verified. */
  readonly verifiesLater: boolean;
}

/** Largest number of rows in a reply. */
const maxRows = 1000;
const answersNames = ["phase", "id", "step", "first", "count", "verify"];

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
  const numberOf = (key: string, fallback: number, max: number, min = 1): number => {
    const text = valueOf(key);
    if (text === null) return fallback;
    const value = Number(text);
    const expected =
      max === Infinity
        ? min === 1
          ? "a positive integer"
          : "an integer that is not negative"
        : `an integer from ${min} to ${max}`;
    if (!/^\d{1,9}$/.test(text) || value < min || value > max)
      throw parameterError(key, quoteValue(text), expected);
    return value;
  };
  const view = valueOf("view");
  if (view !== null && view !== "answers" && view !== "whole")
    throw parameterError("view", quoteValue(view), '"answers" or "whole"');
  checkNames(
    given,
    view === "answers"
      ? ["results_dir", "view", ...answersNames]
      : ["results_dir", "page", "per_page", "steps", "view", "runs"],
  );
  const verify = valueOf("verify");
  if (verify !== null && verify !== "later") throw parameterError("verify", quoteValue(verify), '"later"');
  const [phase, id] = [valueOf("phase"), valueOf("id")];
  if (phase === null && id === null ? valueOf("step") !== null : phase === null || id === null)
    throw parameterError("phase, id, step", "some of them", "all or none");
  const steps = valueOf("steps");
  if (steps !== null && steps !== "all") throw parameterError("steps", quoteValue(steps), '"all"');
  return {
    resultsDir: valueOf("results_dir") ?? "",
    page: numberOf("page", 1, Infinity),
    perPage: numberOf("per_page", defaultPerPage, maxPerPage),
    showsAllRows: steps === "all",
    isWhole: view === "whole",
    runs: parseRuns(valueOf("runs")),
    answers:
      view !== "answers"
        ? null
        : {
            of: phase === null || id === null ? null : { phase, id, step: numberOf("step", 0, Infinity, 0) },
            first: numberOf("first", 0, Infinity, 0),
            count: numberOf("count", 200, maxRows),
            verifiesLater: verify === "later",
          },
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

/** Parses `a,b`. A comma in a path is written `%2C`, as `runsText` does. */
function parseRuns(text: string | null): readonly string[] | null {
  if (text === null) return null;
  const paths = text.split(",").map((part) => part.replaceAll("%2C", ",").replaceAll("%25", "%"));
  if (new Set(paths).size < paths.length || paths.length > maxRuns)
    throw parameterError("runs", `${paths.length} runs`, `up to ${maxRuns} different runs`);
  return paths;
}

export const runsText = (paths: readonly string[]): string =>
  paths.map((path) => path.replaceAll("%", "%25").replaceAll(",", "%2C")).join(",");

function checkNames(given: Readonly<Record<string, unknown>>, known: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw parameterError("parameters", quoteValue(unknown), `only ${known.join(", ")}`);
}

const parameterError = (where: string, got: string, expected: string): PeriodicEvalError =>
  configError({ where, got, expected, fix: "Correct this parameter in the address." });

/** Returns a relative address with the given parameters. */
export function addressOf({
  resultsDir,
  page = 1,
  perPage = defaultPerPage,
  showsAllRows = false,
  isWhole = false,
  runs = null,
}: Partial<Query>): string {
  const query = new URLSearchParams();
  if (resultsDir) query.set("results_dir", resultsDir);
  if (page !== 1) query.set("page", String(page));
  if (perPage !== defaultPerPage) query.set("per_page", String(perPage));
  if (showsAllRows) query.set("steps", "all");
  if (isWhole) query.set("view", "whole");
  if (runs !== null) query.set("runs", runsText(runs));
  return `?${query.toString()}`;
}
