import { quoteValue, describeZodIssue } from "@periodic-eval/contracts/options";
import { HTTPException } from "hono/http-exception";
import * as z from "zod";

/** Most runs in a comparison: more lines cannot be distinguished. */
export const maxRuns = 10;
const defaultPerPage = 20;

const text = z.string().default("");

function integer(min: number, max = 999_999_999) {
  const limits = min === 1 ? "a positive integer" : "an integer that is not negative";
  const expected = max === 999_999_999 ? limits : `an integer from ${min} to ${max}`;
  const digits = z.string().regex(/^\d{1,9}$/, expected);
  return digits.transform(Number).refine((value) => value >= min && value <= max, expected);
}

/** Parses `a,b`. A comma in a path is written `%2C`, as `addressOf` does. */
const runs = z
  .string()
  .transform((paths) => paths.split(",").map((path) => path.replaceAll("%2C", ",").replaceAll("%25", "%")))
  .refine(
    (paths) => new Set(paths).size === paths.length && paths.length <= maxRuns,
    `up to ${maxRuns} different runs`,
  );

/** The parameters of a page, or of the same data as JSON. */
export const pageParameters = z.strictObject({
  results_dir: text,
  page: integer(1).default(1),
  per_page: integer(1, 200).default(defaultPerPage),
  steps: z.literal("all", '"all"').optional(),
  view: z.literal("whole", '"whole"').optional(),
  runs: runs.optional(),
});

/** The parameters of the answers of a run: without `phase` and `id` all measurements, without rows. */
export const answersParameters = z
  .strictObject({
    results_dir: text,
    phase: z.string().optional(),
    id: z.string().optional(),
    step: integer(0).optional(),
    /** 0-based. */
    first: integer(0).default(0),
    count: integer(1, 1000).default(200),
    /** `later`: rows of a large file may be sent before they are verified. */
    verify: z.literal("later", '"later"').optional(),
  })
  .refine(
    ({ phase, id, step }) => (phase === undefined && step === undefined) === (id === undefined),
    "phase and id together",
  );

/** The parameters of a client that follows a folder. */
export const versionParameters = z.strictObject({ results_dir: text });

/** The parameters of a page. */
export interface Query {
  /** Path relative to the served folder; empty for that folder. */
  readonly resultsDir: string;
  /** 1-based. */
  readonly page: number;
  readonly perPage: number;
  /** Whether the page shows the run in the served folder itself, even if the list has other runs (`steps=all`). */
  readonly isOneRun: boolean;
  /** Whether the page of a run waits until all files are read and verified, however many there are. */
  readonly isWhole: boolean;
  /** Paths of the runs to compare; null for another page. */
  readonly runs: readonly string[] | null;
}

/**
 * Parses the parameters of an address.
 *
 * @throws HTTPException 400 for a wrong or repeated parameter.
 */
export function parseQuery<S extends z.ZodObject>(address: string, schema: S): z.output<S> {
  // Hono's own parameters leave out those without a name.
  const { searchParams } = new URL(address);
  const known = Object.keys(schema.shape);
  for (const name of searchParams.keys()) {
    const count = searchParams.getAll(name).length;
    if (count > 1) throw wrongAddress(name, `${count} values`, "one");
    if (!known.includes(name)) throw wrongAddress("parameters", quoteValue(name), `only ${known.join(", ")}`);
  }
  return parseInput(schema, Object.fromEntries(searchParams));
}

/**
 * Checks what a client sent.
 *
 * @throws HTTPException 400 for a wrong value.
 */
export function parseInput<S extends z.ZodType>(schema: S, input: unknown): z.output<S> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const { path, value, expected } = describeZodIssue(result.error, input);
  throw wrongAddress(path.join(".") || "parameters", quoteValue(value), expected);
}

export const wrongAddress = (where: string, got: string | number, expected: string): HTTPException =>
  new HTTPException(400, { message: `${where}: got ${got}, expected ${expected}.` });

/** Returns a relative address with the given parameters. */
export function addressOf({
  resultsDir,
  page = 1,
  perPage = defaultPerPage,
  isOneRun = false,
  isWhole = false,
  runs: compared = null,
}: Partial<Query>): string {
  const query = new URLSearchParams();
  if (resultsDir) query.set("results_dir", resultsDir);
  if (page !== 1) query.set("page", String(page));
  if (perPage !== defaultPerPage) query.set("per_page", String(perPage));
  if (isOneRun) query.set("steps", "all");
  if (isWhole) query.set("view", "whole");
  if (compared !== null)
    query.set("runs", compared.map((path) => path.replaceAll("%", "%25").replaceAll(",", "%2C")).join(","));
  return `?${query.toString()}`;
}
