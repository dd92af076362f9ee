import type { z } from "zod";
import { PeriodicEvalError } from "../../errors.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { parseOptions } from "../../internal/parse-options.ts";

/**
 * Reads a YAML or JSON file and returns its parsed value and its text. A key that occurs twice in an object is an error.
 *
 * @param where Names the option that holds the path, for the error of an unreadable file.
 * @throws PeriodicEvalError `data`, with the line of the syntax error; the error of `readTextFile` for an unreadable file.
 */
export async function readYaml(
  path: string,
  where: string,
): Promise<{ readonly value: unknown; readonly text: string }> {
  const { readTextFile } = await import("../../snapshots/storage/read-file.ts");
  const text = await readTextFile(path, where);
  const { parse } = await import("yaml");
  try {
    return { value: parse(text) as unknown, text };
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "data",
      where: path,
      got: errorMessage(cause).split("\n")[0]!.replace(/:$/, ""),
      expected: "YAML or JSON",
      fix: "Correct the file at that line, and quote strings that contain a colon, a dash or a hash.",
      cause,
    });
  }
}

/**
 * Checks what a file holds against a schema, as `parseOptions` checks options.
 *
 * @param file The file's path: errors read `<file>[0].id`.
 * @throws PeriodicEvalError `data` for the first wrong value.
 */
export function parseData<S extends z.ZodType>(file: string, schema: S, value: unknown): z.output<S> {
  try {
    return parseOptions(file, schema, value);
  } catch (error) {
    if (!PeriodicEvalError.is(error, "config")) throw error;
    const { where, path, got, expected, fix } = error;
    throw new PeriodicEvalError({ code: "data", where, path, got, expected, fix });
  }
}

/** Reads a text file and the SHA-256 of its text. `where` names the option that holds the path. */
export async function readHashed(path: string, where: string) {
  const { readTextFile } = await import("../../snapshots/storage/read-file.ts");
  const text = await readTextFile(path, where);
  return { text, sha256: await sha256(text) };
}

/** Returns the SHA-256 of a string's UTF-8 bytes in hexadecimal. Uses Web Crypto, which browsers have too. */
export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
