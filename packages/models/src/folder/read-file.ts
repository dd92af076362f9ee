import { readdir } from "@periodic-eval/store/browser";
import { isUtf8, join, readFile } from "@periodic-eval/store/platform";
import { invalidUtf8 } from "@periodic-eval/store";
import { errorMessage, isRecord } from "@periodic-eval/contracts/options";
import { strictJson } from "@periodic-eval/data";
import { modelError } from "./model-error.ts";

/** Reads a text file of a model's folder; null if it does not exist. */
export async function readText(folder: string, name: string): Promise<string | null> {
  const path = join(folder, name);
  const bytes = await readFile(path).catch(unlessMissing(path, "file"));
  return bytes === null ? null : utf8Of(bytes, path);
}

/** Returns the names in a folder of a model's folder; none if it does not exist. */
export async function listNames(folder: string, name: string): Promise<readonly string[]> {
  const path = join(folder, name);
  return (await readdir(path).catch(unlessMissing(path, "folder"))) ?? [];
}

/** Returns null for what does not exist. */
const unlessMissing = (path: string, kind: "file" | "folder") => (cause: NodeJS.ErrnoException) => {
  if (cause.code === "ENOENT") return null;
  throw modelError({
    where: path,
    got: cause.code ?? errorMessage(cause),
    expected: `a readable ${kind}`,
    fix: `Check that it is a ${kind}, and check its permissions.`,
    cause,
  });
};

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
  const content = await readJsonObject(folder, name, fix);
  if (content !== null) return content;
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
