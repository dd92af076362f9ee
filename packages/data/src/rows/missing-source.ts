import { command } from "@periodic-eval/contracts/options";

/** Endings of files that hold data. A source with one of them names a file. */
const fileEnding = /\.(jsonl?|ndjson|parquet|csv|tsv|ya?ml|txt)$/i;

const name = String.raw`\w[\w.-]*`;
const dataset = new RegExp(
  String.raw`^(?:https?://huggingface\.co/)?(?:datasets/)?(${name}(?:/${name}){1,3})/?$`,
);

/**
 * Returns the fix for a source of rows that does not exist: `hf:owner/dataset` if it looks like a dataset's name or address on the
 * Hugging Face hub, else `fix`.
 *
 * @param fix A sentence that begins with a verb.
 */
export function fixForMissing(source: unknown, fix: string): string {
  const [, repo] = typeof source === "string" ? (dataset.exec(source) ?? []) : [];
  // `data` is the usual folder of `data get`.
  if (repo === undefined || fileEnding.test(repo) || repo.startsWith("data/")) return fix;
  return `Did you mean "hf:${repo}"? If it is a file: ${fix[0]!.toLowerCase()}${fix.slice(1)}`;
}

/** Names in `periodic-eval data get`; each is also the name of the folder that it writes. */
export const downloadNames: readonly string[] = [
  "arc_challenge",
  "arc_easy",
  "hellaswag",
  "mmlu",
  "truthfulqa",
  "gsm8k",
  "ifeval",
  "betley2025",
];

/** Adds to a fix the command that writes a missing path, if the path is in a folder of `periodic-eval data get`. */
export function withDownload(path: string, fix: string): string {
  const parts = path.split(/[\\/]/);
  const at = parts.findIndex((part) => downloadNames.includes(part));
  if (at < 0 || path.startsWith("hf:")) return fix;
  const get = command(`data get ${parts[at]} --out ${parts.slice(0, at).join("/") || "."}`);
  return `${fix} ${get} writes that folder.`;
}

/** Whether an error, or one that caused it, says that a file does not exist. */
export function isMissingFile(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause)
    if ((at as { readonly code?: unknown }).code === "ENOENT") return true;
  return false;
}
