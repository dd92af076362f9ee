import { process, readFile, byteLength, isUtf8 } from "#platform";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { errorMessage, dataError } from "@periodic-eval/contracts/options";
import { errnoOf, errnoReasons, nodeFiles, storeError, type FileReader } from "./file-system.ts";

/**
 * Returns the text of a file, or null if there is no file.
 *
 * @throws PeriodicEvalError `store` if the file cannot be read.
 */
export async function readIfPresent(path: string, fs: FileReader = nodeFiles): Promise<string | null> {
  try {
    return await fs.read(path);
  } catch (error) {
    if (isAbsence(error)) return null;
    throw storeError(path, error);
  }
}

/** Returns the complete, non-blank lines of a file, without an unfinished last line; empty if there is no file. */
export async function readLines(path: string, fs: FileReader = nodeFiles): Promise<readonly string[]> {
  return completeLines((await readIfPresent(path, fs)) ?? "");
}

/** Returns the complete, non-blank lines of a text. */
export function completeLines(text: string): readonly string[] {
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line.trim() !== "");
}

/** Returns the entries of a folder; empty if there is no folder. */
export async function listIfPresent(folder: string, fs: FileReader): ReturnType<FileReader["list"]> {
  try {
    return await fs.list(folder);
  } catch (error) {
    if (isAbsence(error)) return [];
    throw storeError(folder, error);
  }
}

const isAbsence = (error: unknown): boolean => ["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "");

/**
 * Reads a text file that the user named, without its byte-order mark.
 *
 * @param where The option that names the file, for the error: `capability.questions`.
 * @throws PeriodicEvalError `data` if the file cannot be read, or, with file and line, is not UTF-8.
 */
export async function readTextFile(path: string, where: string): Promise<string> {
  try {
    return utf8Text(await readFile(path), path);
  } catch (error) {
    if (PeriodicEvalError.is(error)) throw error;
    const advice = `Check the path: it is relative to ${process.cwd()}.`;
    throw dataError(where, unreadable(path, error), "a readable text file", advice, error);
  }
}

/** Describes a file that cannot be read: `"none.jsonl", which does not exist`. */
export function unreadable(path: string, error: unknown): string {
  const code = errnoOf(error) ?? "";
  if (code === "ENOENT") return `"${path}", which does not exist`;
  return `"${path}" (${errnoReasons[code] ?? errorMessage(error)})`;
}

/** The advice of every error about bytes that are not UTF-8. */
const fix = "Convert the file to UTF-8.";

/**
 * Decodes a file's bytes as UTF-8, without a byte-order mark.
 *
 * @param path The file's path, for errors.
 * @throws PeriodicEvalError `data` with file, line and byte of the first invalid bytes.
 */
export function utf8Text(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    const { line, content } = firstInvalidLine(bytes);
    throw dataError(`${path}:${line}`, invalidUtf8(content), "a text file in UTF-8", fix, cause);
  }
}

/** Returns a line and its number, from 1. In UTF-8 a line feed is never part of another character, so lines are checked one by one. */
function firstInvalidLine(bytes: Uint8Array): { readonly line: number; readonly content: Uint8Array } {
  let line = 1;
  for (let start = 0; ; line++) {
    const end = bytes.indexOf(0x0a, start);
    const content = bytes.subarray(start, end === -1 ? undefined : end);
    if (end === -1 || !isUtf8(content)) return { line, content };
    start = end + 1;
  }
}

/** Returns `bytes that are not UTF-8 (0xff at byte 7)`; the bytes are counted from 1. */
export function invalidUtf8(bytes: Uint8Array): string {
  let at = 0;
  for (const character of new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)) {
    const length = byteLength(character);
    // The bytes themselves may hold U+FFFD, which stands for invalid bytes too.
    if (character === "\uFFFD" && !isUtf8(bytes.subarray(at, at + length))) break;
    at += length;
  }
  return `bytes that are not UTF-8 (0x${bytes[at]?.toString(16)} at byte ${at + 1})`;
}
