import * as z from "zod";
import { snapshotSchema, type Snapshot, PeriodicEvalError } from "@periodic-eval/contracts";
import { describeZodIssue, quoteValue } from "@periodic-eval/contracts/options";

/**
 * Validates parsed JSON as a snapshot and keeps keys that the schema does not know.
 *
 * @param where Names the file in the error.
 * @throws PeriodicEvalError `store` with the `path` of the first wrong field.
 */
export function parseSnapshot(value: unknown, where = "snapshot"): Snapshot {
  const result = snapshotSchema.safeParse(value);
  if (result.success) return result.data;
  const { path, value: got, expected } = describeZodIssue(result.error, value);
  const field = path.join(".");
  throw new PeriodicEvalError({
    code: "store",
    where: field === "" ? where : `${where}: ${field}`,
    path,
    got: quoteValue(got),
    expected,
    fix: "Compare it with the published JSON Schema (@periodic-eval/core/schema.json).",
    cause: result.error,
  });
}

/**
 * Parses the text of a snapshot file.
 *
 * @param where Names the file in the error.
 * @throws PeriodicEvalError `store` if it is not JSON or not a snapshot.
 */
export function parseSnapshotText(text: string, where: string): Snapshot {
  return parseSnapshot(parseSnapshotJson(text, where), where);
}

/** Parses the JSON of a snapshot file without validating it. Throws as `parseSnapshotText` does. */
export function parseSnapshotJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "store",
      where,
      got: text.trim() === "" ? "an empty file" : `text that is not JSON (${(cause as Error).message})`,
      expected: "a snapshot",
      fix: "Move the file away: another program wrote it, or it was damaged after it was written.",
      cause,
    });
  }
}

/**
 * Returns the published JSON Schema (draft 2020-12) of a snapshot file, generated from the schema that the store validates
 * with. It allows additional keys everywhere, so that a later minor version may add some.
 */
export function snapshotJsonSchema(): Readonly<Record<string, unknown>> {
  return {
    $id: "urn:periodic-eval:snapshot:1",
    title: "periodic-eval snapshot",
    ...z.toJSONSchema(snapshotSchema, { io: "input" }),
  };
}
