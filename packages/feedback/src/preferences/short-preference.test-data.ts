import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse, stringify } from "yaml";

const shipped = fileURLToPath(new URL("../../preferences", import.meta.url));

async function shorten<T extends object>(from: string, to: string, change: (whole: T) => T): Promise<string> {
  await writeFile(to, stringify(change(parse(await readFile(join(shipped, from), "utf8")) as T)));
  return to;
}

/**
 * Writes the embedded model's preference `identity` with three training prompts and two held-out prompts in place of twelve and
 * eight, and returns the file's path. Sampling answers takes most of the time of a run.
 */
export const writeShortIdentity = (folder: string): Promise<string> =>
  shorten<Record<"train_prompts" | "probe_prompts", readonly string[]>>(
    "micro-world/identity.yaml",
    join(folder, "identity.yaml"),
    (whole) => ({
      ...whole,
      train_prompts: whole.train_prompts.slice(0, 3),
      probe_prompts: whole.probe_prompts.slice(0, 2),
    }),
  );
