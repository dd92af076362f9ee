import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

export const metadata = 'name: sums\nversion: "2"\n';

export interface FolderFiles {
  /** The text of `metadata.yaml`. */
  readonly metadata?: string;
  /** Lines of `tasks.jsonl`: objects to serialize, or raw strings. */
  readonly tasks?: readonly (object | string)[];
  /** Additional files by name. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Creates a benchmark folder for one test. */
export async function benchmarkFolder({ tasks = [], files = {}, ...given }: FolderFiles): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "periodic-eval-benchmark-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const lines = tasks.map((task) => (typeof task === "string" ? task : JSON.stringify(task)));
  const all = {
    "metadata.yaml": given.metadata ?? metadata,
    "tasks.jsonl": `${lines.join("\n")}\n`,
    ...files,
  };
  for (const [name, text] of Object.entries(all)) await writeFile(join(folder, name), text);
  return folder;
}

/** Returns the errors that a promise rejects with. */
export async function errorsOf(work: Promise<unknown>): Promise<readonly Error[]> {
  const error: unknown = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  return error instanceof AggregateError ? (error.errors as readonly Error[]) : [error as Error];
}
