import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeFolder, writeWholeFolder } from "@periodic-eval/store";

/**
 * Copies the tokenizer of a checkpoint into the run's folder, because the trainer may delete the checkpoint, and returns its folder;
 * null if the checkpoint has none. Every watcher of a phase uses the first copy.
 */
export async function keepTokenizer(
  checkpoint: string,
  runDir: string,
  phase: string,
): Promise<string | null> {
  const kept = join(runDir, "watch", `${phase}.tokenizer`);
  const namesIn = (folder: string) => readdir(folder).catch((): string[] => []);
  if ((await namesIn(kept)).length > 0) return kept;
  const names = (await namesIn(checkpoint)).filter((name) => files.test(name));
  if (!names.includes("tokenizer.json")) return null;
  await makeFolder(dirname(kept));
  await writeWholeFolder(kept, async (draft) => {
    for (const name of names) await writeFile(join(draft, name), await readFile(join(checkpoint, name)));
  });
  return kept;
}

/** All files that `loadTokenizer` reads: `config.json` decides the class of the tokenizer. */
const files =
  /^(tokenizer|tokenizer_config|special_tokens_map|added_tokens|generation_config|config)\.json$|^chat_template\.jinja$/;
