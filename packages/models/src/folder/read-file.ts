import { isUtf8, join, lstat, open, realpath, sep } from "@periodic-eval/store/platform";
import { PeriodicEvalError } from "@periodic-eval/core";
import { invalidUtf8 } from "@periodic-eval/store";
import { errorMessage, isRecord } from "@periodic-eval/contracts/options";
import { strictJson } from "@periodic-eval/data";
import { modelError } from "./model-error.ts";

/** The largest legitimate text files, vocabularies of a million tokens, take 40 MB. */
const maxTextBytes = 256_000_000;

/** Matches a blob in the hub cache, which the links in its snapshots point to. */
const hubBlob = /[\\/]models--[^\\/]+[\\/]blobs[\\/][0-9a-f]+$/;

/**
 * Returns the path of a file in a model's folder after checking that it stays inside. A link may point into the folder or
 * to a blob of the hub cache: in a downloaded folder any other link could name any file of the machine, and saving the
 * model would copy it. A missing file is not an error here; the reader reports it.
 *
 * @throws PeriodicEvalError `model` for a link out of the folder, a pipe, a socket or a device.
 */
export async function pathInFolder(folder: string, name: string): Promise<string> {
  const path = join(folder, name);
  const found = await lstat(path).catch(() => null);
  if (found === null || found.isFile() || found.isDirectory()) return path;
  if (!found.isSymbolicLink())
    throw modelError({
      where: path,
      got: "a pipe, socket or device",
      expected: "a regular file",
      fix: "Replace it with the file itself.",
    });
  const target = await realpath(path).catch(() => null);
  if (target === null) return path;
  if (target.startsWith((await realpath(folder)) + sep) || hubBlob.test(target)) return path;
  throw modelError({
    where: path,
    got: `a link to ${target}`,
    expected: "a file of this folder",
    fix: "Copy the file into the folder, or link the whole folder.",
  });
}

/** Reads a text file of a model's folder; null if it does not exist. */
export async function readText(folder: string, name: string): Promise<string | null> {
  const path = await pathInFolder(folder, name);
  try {
    const file = await open(path, "r");
    try {
      const { size } = await file.stat();
      if (size > maxTextBytes)
        throw modelError({
          where: path,
          got: `${size} bytes`,
          expected: `at most ${maxTextBytes}`,
          fix: "Download the file again: this is not the expected text file.",
        });
      return utf8Of(await file.readFile(), path);
    } finally {
      await file.close();
    }
  } catch (cause) {
    if (PeriodicEvalError.is(cause)) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    throw modelError({
      where: path,
      got: code ?? errorMessage(cause),
      expected: "a readable file",
      fix: "Check that it is a file, and check its permissions.",
      cause,
    });
  }
}

/** Decodes UTF-8 as transformers does, which refuses invalid bytes. */
function utf8Of(bytes: Uint8Array, where: string): string {
  if (isUtf8(bytes)) return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  const fix = "Download or write the file again: it is damaged.";
  throw modelError({ where, got: invalidUtf8(bytes), expected: "a text file in UTF-8", fix });
}

/** Reads a JSON object from a model's folder; null if the file does not exist. Throws as `parseJsonObject`. */
export async function readJsonObject(
  folder: string,
  name: string,
  fix: string,
): Promise<Readonly<Record<string, unknown>> | null> {
  const text = await readText(folder, name);
  return text === null ? null : parseJsonObject(text, join(folder, name), fix);
}

/** Like `readJsonObject`, and throws a `model` error if the file does not exist. */
export async function requireJsonObject(
  folder: string,
  name: string,
  fix: string,
): Promise<Readonly<Record<string, unknown>>> {
  const found = await readJsonObject(folder, name, fix);
  if (found !== null) return found;
  throw modelError({ where: join(folder, name), got: "no such file", expected: "a JSON object", fix });
}

/**
 * Parses a JSON object without repeated keys.
 *
 * @param where Names the text in errors.
 * @throws PeriodicEvalError `model` for anything else.
 */
export function parseJsonObject(text: string, where: string, fix: string): Readonly<Record<string, unknown>> {
  const parsed = strictJson(text);
  if (parsed.fault !== null) throw modelError({ where, ...parsed.fault, fix });
  const { value } = parsed;
  if (isRecord(value)) return value;
  const got = Array.isArray(value) ? "an array" : String(value);
  throw modelError({ where, got, expected: "a JSON object", fix });
}
