import { lstat, open, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { walkJson } from "@periodic-eval/core/internal";
import { failure } from "./failure.ts";

/** The largest of the texts, vocabularies of a million tokens, take 40 MB. */
const maxTextBytes = 256_000_000;

/** What nests deeper exhausts the stack of whoever walks it. */
const maxDepth = 200;

/** Where the cache of the hub keeps what its snapshots link to. */
const hubBlob = /[\\/]models--[^\\/]+[\\/]blobs[\\/][0-9a-f]+$/;

/**
 * The path of a model's file, proven to be a file of its folder. A link is followed inside the folder and into the blobs
 * of a hub's cache, and refused where it leads elsewhere: a folder from somebody else could name any file of the machine,
 * and saving the model would take it along. A file that is absent is the reader's to find so.
 */
export async function pathInFolder(folder: string, name: string): Promise<string> {
  const path = join(folder, name);
  const found = await lstat(path).catch(() => null);
  if (found === null || found.isFile() || found.isDirectory()) return path;
  if (!found.isSymbolicLink())
    throw failure(path, "a pipe, socket or device", "a file", "Put the file itself there.");
  const target = await realpath(path).catch(() => null);
  if (target === null) return path;
  if (target.startsWith((await realpath(folder)) + sep) || hubBlob.test(target)) return path;
  const fix = "Put the file itself into the folder, or link the whole folder.";
  throw failure(path, `a link to ${target}`, "a file of this folder", fix);
}

/** A text of a model's folder; null where there is none. */
export async function readText(folder: string, name: string): Promise<string | null> {
  const path = await pathInFolder(folder, name);
  try {
    const file = await open(path, "r");
    try {
      const { size } = await file.stat();
      if (size > maxTextBytes)
        throw failure(
          path,
          `${size} bytes`,
          `at most ${maxTextBytes}`,
          "Fetch the file anew: it is no such text.",
        );
      return await file.readFile("utf8");
    } finally {
      await file.close();
    }
  } catch (error) {
    const { code, message, name: kind } = error as NodeJS.ErrnoException;
    if (kind === "PeriodicEvalError") throw error;
    if (code === "ENOENT") return null;
    throw failure(
      path,
      code ?? message,
      "a readable file",
      "Check that it is a file, and its permissions.",
      error,
    );
  }
}

/** A text parsed as a JSON object; null where there is no file. */
export async function readJsonObject(
  folder: string,
  name: string,
  fix: string,
): Promise<Readonly<Record<string, unknown>> | null> {
  const text = await readText(folder, name);
  return text === null ? null : parseJsonObject(text, join(folder, name), fix);
}

/** @param where names the text in errors */
export function parseJsonObject(text: string, where: string, fix: string): Readonly<Record<string, unknown>> {
  if (isDeeperThan(maxDepth, text)) throw failure(where, "deeper nesting", `at most ${maxDepth} levels`, fix);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw failure(where, `no JSON (${(cause as Error).message})`, "a JSON object", fix, cause);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw failure(where, Array.isArray(value) ? "a list" : String(value), "a JSON object", fix);
}

function isDeeperThan(limit: number, json: string): boolean {
  let isDeeper = false;
  walkJson(json, (sign, level) => {
    isDeeper = level >= limit && (sign === "{" || sign === "[");
    return !isDeeper;
  });
  return isDeeper;
}
