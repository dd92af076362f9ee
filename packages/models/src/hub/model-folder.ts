import { parseHubId } from "@periodic-eval/data";
import { stat } from "@periodic-eval/store/browser";
import { modelError } from "../folder/model-error.ts";
import { fetchModel, type FetchOptions } from "./fetch-model.ts";

/**
 * Returns the folder of a model: `source` itself if it is a local folder, else the cache folder of the hub model
 * `owner/name` or `owner/name@revision`, downloaded if needed.
 *
 * @throws PeriodicEvalError `model` if `source` is neither, or if the download fails.
 */
export async function modelFolder(source: string, options: FetchOptions): Promise<string> {
  const kind = await kindOf(source);
  if (kind === "folder") return source;
  const id = kind === "none" ? parseHubId(source) : null;
  if (id !== null) return fetchModel(id, options);
  throw modelError({
    where: typeof source === "string" ? source : "model",
    got: kind === "none" ? "neither an existing folder nor the name of a model on the hub" : "a file",
    expected: "a folder that Hugging Face libraries saved, or owner/name or owner/name@revision on the hub",
    fix: kind === "none" ? "Check the path." : "Pass the folder that contains the file.",
  });
}

async function kindOf(path: string): Promise<"folder" | "file" | "none"> {
  try {
    return (await stat(path)).isDirectory() ? "folder" : "file";
  } catch (error) {
    // A path that exists but cannot be read fails later, with the reason.
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
