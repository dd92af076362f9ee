import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { createHasher } from "@periodic-eval/core/random";
import { errorMessage } from "@periodic-eval/core/internal";
import { writeFileAtomic } from "@periodic-eval/core/snapshots";
import { z } from "zod";
import type { PairLogProbs } from "./reference.ts";

const fileSchema = z.object({
  schema_version: z.literal(1),
  /** Hash of all that the numbers depend on. */
  key: z.string(),
  /** Hash of the numbers. */
  hash: z.string(),
  /** In nats, by pair. */
  ref_chosen_logps: z.array(z.number()),
  ref_rejected_logps: z.array(z.number()),
});

/** Of all numbers as float32, those of the chosen before those of the rejected: what steps are computed with. */
export const hashOfLogProbs = (pairs: readonly PairLogProbs[]): string =>
  createHasher()
    .update(
      Float32Array.from([...pairs.map(({ chosen }) => chosen), ...pairs.map(({ rejected }) => rejected)]),
    )
    .digest();

export interface ReferenceNumbers {
  readonly pairs: readonly PairLogProbs[];
  /** Writes the file where it has not these numbers. */
  keep(): Promise<void>;
}

/**
 * The numbers that the run read before, where the file has them under the same key; else `read` reads them, for the file
 * to keep: a killed run need not read its reference again, and goes on with the same bits on a machine whose engine
 * rounds otherwise. A file that is torn or changed is as none.
 */
export async function keptLogProbs(
  path: string,
  key: string,
  read: () => Promise<readonly PairLogProbs[]>,
  warn: (where: string, message: string) => void,
): Promise<ReferenceNumbers> {
  const kept = await readKept(path, key);
  if (kept !== null) return { pairs: kept, keep: async () => {} };
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
    await mkdir(dirname(path), { recursive: true });
    await writeFileAtomic(path, `${JSON.stringify(content)}\n`);
  } catch (error) {
    warn(path, `a resume will read the reference again: ${errorMessage(error)}`);
  }
}

async function readKept(path: string, key: string): Promise<readonly PairLogProbs[] | null> {
  try {
    const kept = fileSchema.parse(JSON.parse(await readFile(path, "utf8")));
    const pairs = kept.ref_chosen_logps.map((chosen, i) => ({
      chosen,
      rejected: kept.ref_rejected_logps[i]!,
    }));
    return kept.key === key && kept.hash === hashOfLogProbs(pairs) ? pairs : null;
  } catch {
    return null;
  }
}
