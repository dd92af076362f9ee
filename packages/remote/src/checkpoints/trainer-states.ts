import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Candidate } from "./checkpoint-names.ts";
import { readTrainerState } from "./trainer-state.ts";
import type { DatedState } from "./training-beginning.ts";

/** States by path, with the signature of their files. */
export type StateCache = Map<string, { readonly signature: string; readonly dated: DatedState }>;

/** Reads the `trainer_state.json` of checkpoints, complete or not. Leaves out those that cannot be read. */
export async function readTrainerStates(
  candidates: readonly Candidate[],
  cache: StateCache = new Map(),
): Promise<readonly DatedState[]> {
  const states = await Promise.all(
    candidates.map(async ({ step, path }) => {
      const file = join(path, "trainer_state.json");
      try {
        const { size, mtimeMs, ctimeMs, ino } = await stat(file);
        const signature = [size, mtimeMs, ctimeMs, ino].join();
        const known = cache.get(path);
        if (known?.signature === signature) return known.dated;
        const state = readTrainerState(await readFile(file, "utf8"));
        const dated = { step, path, state, writtenAt: mtimeMs };
        cache.set(path, { signature, dated });
        return dated;
      } catch {
        return null;
      }
    }),
  );
  return states.filter((state) => state !== null);
}
