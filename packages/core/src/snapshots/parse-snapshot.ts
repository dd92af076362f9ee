import { quoteValue } from "../internal/quote-value.ts";
import { PeriodicEvalError } from "../errors.ts";
import { describeZodIssue } from "../internal/describe-zod-issue.ts";
import { snapshotSchema, type Snapshot } from "../contracts/snapshot.ts";

/**
 * A snapshot from parsed JSON; keys that the schema does not know are kept. Throws a `store` error that names the first
 * field that is wrong. `where` names the file.
 */
export function parseSnapshot(value: unknown, where = "snapshot"): Snapshot {
  const result = snapshotSchema.safeParse(value);
  if (result.success) return result.data;
  const { path, value: got, expected } = describeZodIssue(result.error, value);
  const field = path.join(".");
  throw new PeriodicEvalError({
    code: "store",
    where: field === "" ? where : `${where}: ${field}`,
    got: shorten(quoteValue(got)),
    expected,
    fix: "Compare it with the published JSON Schema (@periodic-eval/core/schema.json).",
    cause: result.error,
  });
}

/** `parseSnapshot` from the text of a file. */
export function parseSnapshotText(text: string, where: string): Snapshot {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "store",
      where,
      got: text.trim() === "" ? "an empty file" : `text that is no JSON (${(cause as Error).message})`,
      expected: "a snapshot",
      fix: "Move the file away: it was not written by this store, or was damaged since.",
      cause,
    });
  }
  return parseSnapshot(value, where);
}

function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
