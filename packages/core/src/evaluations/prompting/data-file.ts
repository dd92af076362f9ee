import { isSeq, LineCounter, type Node } from "yaml";
import { PeriodicEvalError, type SourceOption } from "@periodic-eval/contracts";
import { changedError, errorMessage, atOption, optionAt } from "@periodic-eval/contracts/options";
import {
  parseJson,
  parseYaml,
  checkRowLength,
  fixForMissing,
  isMissingFile,
  withDownload,
} from "@periodic-eval/data";
import { readTextFile } from "@periodic-eval/store";

/**
 * Reads a YAML or JSON (`.json`) file and returns its parsed value and its text. A key that occurs twice in an object is an error.
 *
 * @param option The option that holds the path, for the error of an unreadable file; or only its place.
 * @throws PeriodicEvalError `data`, with the line of the syntax error; the error of `readTextFile` for an unreadable file.
 */
export async function readYaml(
  path: string,
  option: SourceOption | string,
): Promise<{ readonly value: unknown; readonly text: string }> {
  const text = await readSourceText(path, option);
  if (/\.json$/i.test(path))
    try {
      return { value: parseJson(text, path, ""), text };
    } catch {
      // The parser of YAML names the line of the fault.
    }
  return { value: parseYamlText(text, path).value, text };
}

/** More aliases of aliases fill the memory. */
const maximumAliases = 10_000;

/**
 * Parses YAML or JSON. `lineOf` returns the line of an entry, if the value is an array.
 *
 * @throws PeriodicEvalError `data` with the line of the first error.
 */
export function parseYamlText(
  text: string,
  path: string,
): { readonly value: unknown; lineOf(entry: number): number } {
  const lines = new LineCounter();
  const document = parseYaml(text, lines);
  const [fault] = document.errors;
  try {
    if (fault !== undefined) throw fault;
    const entries = isSeq<Node>(document.contents) ? document.contents.items : [];
    return {
      value: document.toJS({ maxAliasCount: maximumAliases }),
      lineOf: (entry) => lines.linePos(entries[entry]?.range?.[0] ?? 0).line,
    };
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "data",
      where: fault === undefined ? path : `${path}:${lines.linePos(fault.pos[0]).line}`,
      got: errorMessage(cause).split("\n")[0]!,
      expected: "YAML or JSON",
      fix: "Correct the file at that line, and quote strings that contain a colon, a dash or a hash.",
      cause,
    });
  }
}

/** Reads a text file and the SHA-256 of its text. `option` holds the path. */
export async function readHashed(path: string, option: SourceOption | string) {
  const text = await readSourceText(path, option);
  return { text, sha256: await sha256(text) };
}

/** Reads a text file, whose lines must not be longer than a row may be. The error of a missing one names the dataset on the hub that may be meant. */
async function readSourceText(path: string, option: SourceOption | string): Promise<string> {
  const read = atOption(option, () => readTextFile(path, optionAt(option).where));
  const text = await read.catch((error: unknown) => {
    if (!PeriodicEvalError.is(error) || !isMissingFile(error)) throw error;
    throw changedError(error, { fix: withDownload(path, fixForMissing(path, error.fix)) });
  });
  for (const [at, line] of text.split("\n").entries()) checkRowLength(`${path}:${at + 1}`, line.length);
  return text;
}

/** Returns the SHA-256 of a string's UTF-8 bytes in hexadecimal. Uses Web Crypto, which browsers have too. */
export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
