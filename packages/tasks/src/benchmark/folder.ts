import { join } from "node:path";
import { atOption, filledText, isRecord } from "@periodic-eval/contracts/options";
import type { ValuePath } from "@periodic-eval/core";
import { hashText } from "@periodic-eval/core/random";
import { readYaml } from "@periodic-eval/data";
import { readTextFile } from "@periodic-eval/store";
import * as z from "zod";
import type { BenchmarkTask } from "./benchmark-task.ts";
import {
  mistakes as newMistakes,
  type Mistakes,
  parseTask,
  splitSchema,
  type TaskDefaults,
} from "./task-line.ts";
import { openVerifiers, type OpenVerifiers } from "./verifiers/open-verifiers.ts";
import { verifierSpec } from "./verifiers/verifier-spec.ts";

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
  const { name, version, defaults, text: metadataText } = await readMetadata(metadataPath, mistakes);
  const { tasks, places } = await parseTasks(text, tasksPath, defaults, mistakes);
  for (const task of tasks) {
    await mistakes.keep(places.get(task.id)!, () => verifiers.open(task));
  }
  mistakes.throwAny();
  const hashes = { "tasks.jsonl": hashText(text), "metadata.yaml": hashText(metadataText) };
  return { name, version, tasks, places, hashes, verifiers: verifiers.fingerprints() };
}

async function parseTasks(
  text: string,
  file: string,
  defaults: TaskDefaults,
  mistakes: Mistakes,
): Promise<Pick<Benchmark, "tasks" | "places">> {
  const places = new Map<string, string>();
  const tasks: BenchmarkTask[] = [];
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    const where = `${file}:${at + 1}`;
    const task = line.trim() === "" ? null : await parseTask(line, where, defaults, mistakes);
    if (task === null) continue;
    const earlier = places.get(task.id);
    if (earlier === undefined) tasks.push(task);
    else {
      const got = `the id "${task.id}", which ${earlier} also has`;
      mistakes.add({ where, got, expected: "unique ids", fix: "Rename one of the two." });
    }
    places.set(task.id, earlier ?? where);
  }
  if (text.trim() === "")
    mistakes.add({
      where: file,
      got: "no tasks",
      expected: "one task per line",
      fix: 'Write lines such as {"id": "t1", "prompt": "…", "answer": "…"}.',
    });
  return { tasks, places };
}

const quoted = filledText("a string").meta({ fix: "Write it in quotes." });
const metadataSchema = z.strictObject(
  {
    name: quoted,
    version: quoted,
    description: quoted.optional(),
    split: splitSchema.meta({ fix: "Correct it, or leave it out." }).optional(),
    verifier: z.unknown().optional(),
  },
  "an object with name and version",
);

/** Reads `metadata.yaml`. Adds wrong values to the mistakes, and returns placeholders for them. */
async function readMetadata(path: string, mistakes: Mistakes) {
  const { value, text, lineOf } = await readYaml(path, "benchmark");
  const placeOf = (key: ValuePath) => {
    const line = key.length === 0 ? null : lineOf(key);
    return line === null ? path : `${path}:${line}`;
  };
  const read = mistakes.read(path, metadataSchema, value, placeOf);
  const { verifier: spec } = isRecord(value) ? value : {};
  const verifier =
    spec === undefined ? null : await mistakes.keep(placeOf(["verifier"]), () => verifierSpec(spec));
  const { name = "", version = "", split } = read ?? {};
  return { name, version, text, defaults: { ...(split && { split }), ...(verifier && { verifier }) } };
}
