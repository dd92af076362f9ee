import { hashText } from "@periodic-eval/core/random";
import { readTextFile, utf8Text } from "@periodic-eval/store";
import { atOption } from "@periodic-eval/contracts/options";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { readMetadata } from "./metadata.ts";
import { mistakes as newMistakes, type Mistakes } from "./mistakes.ts";
import { parseTask, type TaskDefaults } from "./task-line.ts";
import type { BenchmarkTask } from "./benchmark-task.ts";
import { openVerifiers, type OpenVerifiers } from "./verifiers/open-verifiers.ts";

/** A custom benchmark, read from its folder. */
export interface Benchmark {
  readonly name: string;
  readonly version: string;
  /** The tasks of both splits, in the file's order. */
  readonly tasks: readonly BenchmarkTask[];
  /** `path/to/tasks.jsonl:12`, by the task's id. */
  readonly places: ReadonlyMap<string, string>;
  /** Hashes of the text of `tasks.jsonl` and `metadata.yaml`. */
  readonly hashes: Readonly<Record<string, string>>;
  /** Versions of the built-in verifiers that tasks use, and hashes of the benchmark's modules. */
  readonly verifiers: Readonly<Record<string, string>>;
}

/**
 * Reads a folder with `tasks.jsonl` and `metadata.yaml` (`docs/guides/custom-benchmark.md`) and opens the verifier of each task. Checks
 * everything before it reports mistakes.
 *
 * @param verifiers The folder's verifiers, if the caller uses them again.
 * @throws PeriodicEvalError `data` with file and line; several mistakes become an AggregateError.
 */
export async function readBenchmark(
  folder: string,
  verifiers: OpenVerifiers = openVerifiers(folder),
): Promise<Benchmark> {
  const mistakes = newMistakes();
  const [metadataPath, tasksPath] = [join(folder, "metadata.yaml"), join(folder, "tasks.jsonl")];
  const option = { where: "benchmark", path: ["benchmark"] };
  const text = await atOption(option, () => readTextFile(tasksPath, option.where));
  const { metadata, text: metadataText } = await readMetadata(metadataPath, mistakes);
  for (const path of [tasksPath, metadataPath]) utf8Text(await readFile(path), path);
  const { tasks, places } = parseTasks(text, tasksPath, metadata, mistakes);
  for (const task of tasks) {
    try {
      await verifiers.open(task);
    } catch (error) {
      mistakes.keep(error, places.get(task.id)!);
    }
  }
  mistakes.throwAny();
  const { name, version } = metadata;
  const hashes = { "tasks.jsonl": hashText(text), "metadata.yaml": hashText(metadataText) };
  return { name, version, tasks, places, hashes, verifiers: verifiers.fingerprints() };
}

function parseTasks(
  text: string,
  file: string,
  defaults: TaskDefaults,
  mistakes: Mistakes,
): Pick<Benchmark, "tasks" | "places"> {
  const places = new Map<string, string>();
  const tasks = text.split(/\r?\n/).flatMap((line, at) => {
    if (line.trim() === "") return [];
    const place = `${file}:${at + 1}`;
    const task = parseTask(line, place, defaults, mistakes);
    if (task === null) return [];
    const earlier = places.get(task.id);
    if (earlier !== undefined) {
      const got = `the id "${task.id}", which ${earlier} also has`;
      mistakes.add({ where: place, got, expected: "unique ids", fix: "Rename one of the two." });
      return [];
    }
    places.set(task.id, place);
    return [task];
  });
  if (text.trim() === "")
    mistakes.add({
      where: file,
      got: "no tasks",
      expected: "one task per line",
      fix: 'Write lines such as {"id": "t1", "prompt": "…", "answer": "…"}.',
    });
  return { tasks, places };
}
