import { process, readFile } from "#platform";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { errnoOf, errnoReasons, nodeFiles, storeError, type FileReader } from "./file-system.ts";
import { utf8Text } from "./utf8.ts";

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
    throw new PeriodicEvalError({
      code: "data",
      where,
      got: unreadable(path, error),
      expected: "a readable text file",
      fix: `Check the path: it is relative to ${process.cwd()}.`,
      cause: error,
    });
  }
}

/** Describes a file that cannot be read: `"none.jsonl", which does not exist`. */
export function unreadable(path: string, error: unknown): string {
  const code = errnoOf(error) ?? "";
  if (code === "ENOENT") return `"${path}", which does not exist`;
  return `"${path}" (${errnoReasons[code] ?? errorMessage(error)})`;
}
