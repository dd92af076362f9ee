import { dirname } from "@periodic-eval/store/platform";
import { readFile } from "@periodic-eval/store/browser";
import { createHasher } from "@periodic-eval/core/random";
import { errorMessage } from "@periodic-eval/contracts/options";
import { writeFileAtomic, nodeFiles } from "@periodic-eval/store";
import * as z from "zod";
import type { PairLogProbs } from "./reference.ts";

const fileSchema = z.object({
  schema_version: z.literal(1),
  /** Hash of everything that the log-probs depend on. */
  key: z.string(),
  /** Hash of the log-probs. */
  hash: z.string(),
  /** In nats, one per pair. */
  ref_chosen_logps: z.array(z.number()),
  ref_rejected_logps: z.array(z.number()),
});

/** Hashes all log-probs as float32, as steps use them: those of the chosen completions, then those of the rejected. */
export const hashOfLogProbs = (pairs: readonly PairLogProbs[]): string =>
  createHasher()
    .update(
      Float32Array.from([...pairs.map(({ chosen }) => chosen), ...pairs.map(({ rejected }) => rejected)]),
    )
    .digest();

export interface StoredReference {
  readonly pairs: readonly PairLogProbs[];
  /** Writes the file if it does not hold these log-probs. */
  keep(): Promise<void>;
}

/**
 * Returns the log-probs in the file if it holds them under the same key; otherwise computes them with `read`. A resumed run
 * thus need not run its reference again, and continues with the same bits on a machine whose backend rounds differently. A
 * damaged or changed file is ignored.
 */
export async function loadOrRead(
  path: string,
  key: string,
  read: () => Promise<readonly PairLogProbs[]>,
  warn: (where: string, message: string) => void,
): Promise<StoredReference> {
  const stored = await load(path, key);
  if (stored !== null) return { pairs: stored, keep: async () => {} };
  const pairs = await read();
  return { pairs, keep: () => write(path, key, pairs, warn) };
}

async function write(
  path: string,
  key: string,
  found: readonly PairLogProbs[],
  warn: (where: string, message: string) => void,
): Promise<void> {
  const content: z.infer<typeof fileSchema> = {
    schema_version: 1,
    key,
    hash: hashOfLogProbs(found),
    ref_chosen_logps: found.map(({ chosen }) => chosen),
    ref_rejected_logps: found.map(({ rejected }) => rejected),
  };
  try {
    await nodeFiles.makeFolder(dirname(path));
    await writeFileAtomic(path, `${JSON.stringify(content)}\n`);
  } catch (error) {
    warn(path, `a resume will run the reference again: ${errorMessage(error)}`);
  }
}

async function load(path: string, key: string): Promise<readonly PairLogProbs[] | null> {
  try {
    const stored = fileSchema.parse(JSON.parse(await readFile(path, "utf8")));
    const pairs = stored.ref_chosen_logps.map((chosen, i) => ({
      chosen,
      rejected: stored.ref_rejected_logps[i]!,
    }));
    return stored.key === key && stored.hash === hashOfLogProbs(pairs) ? pairs : null;
  } catch {
    return null;
  }
}
