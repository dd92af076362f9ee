import { stat } from "node:fs/promises";
import { PeriodicEvalError } from "@periodic-eval/core";
import { fetchModel, type FetchOptions } from "./fetch-model.ts";
import { parseHubId } from "./hub-id.ts";

/**
 * The folder that a caller means: a local one where it is there, else that of a model of the hub (`owner/name` or
 * `owner/name@revision`), fetched where it must be. Throws a `model` error where the text is neither.
 */
export async function modelFolder(source: string, options: FetchOptions): Promise<string> {
  const kind = await kindOf(source);
  if (kind === "folder") return source;
  const id = kind === "none" ? parseHubId(source) : null;
  if (id !== null) return fetchModel(id, options);
  throw new PeriodicEvalError({
    code: "model",
    where: typeof source === "string" ? source : "model",
    got: kind === "none" ? "neither a folder that is there nor the name of a model on the hub" : "a file",
    expected: "a folder as Hugging Face saves a model, or owner/name or owner/name@revision on the hub",
    fix: kind === "none" ? "Check the path." : "Name the folder that the file lies in.",
  });
}

async function kindOf(path: string): Promise<"folder" | "file" | "none"> {
  try {
    return (await stat(path)).isDirectory() ? "folder" : "file";
  } catch (error) {
    // Of one that is there and cannot be read, its reader says why.
    return absent.has((error as NodeJS.ErrnoException).code ?? "") ? "none" : "folder";
  }
}

const absent = new Set([
  "ENOENT",
  "ENOTDIR",
  "ENAMETOOLONG",
  "ERR_INVALID_ARG_VALUE",
  "ERR_INVALID_ARG_TYPE",
]);
