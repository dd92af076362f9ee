import { join } from "node:path";
import { atOption, didYouMean, isRecord, quoteValue } from "@periodic-eval/contracts/options";
import { hashText } from "@periodic-eval/core/random";
import { readYaml } from "@periodic-eval/data";
import { readTextFile } from "@periodic-eval/store";
import { type BenchmarkTask, splits, type Split } from "./benchmark-task.ts";
import { mistakes as newMistakes, type Mistakes, parseTask, type TaskDefaults } from "./task-line.ts";
import { openVerifiers, type OpenVerifiers } from "./verifiers/open-verifiers.ts";
import { verifierSpec, type VerifierSpec } from "./verifiers/verifier-spec.ts";

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

interface BenchmarkMetadata extends TaskDefaults {
  readonly name: string;
  readonly version: string;
}

const known = ["name", "version", "description", "split", "verifier"];

/** Reads `metadata.yaml`. Adds wrong values to the mistakes, and returns placeholders for them. */
async function readMetadata(
  path: string,
  mistakes: Mistakes,
): Promise<{ readonly metadata: BenchmarkMetadata; readonly text: string }> {
  const { value, text, lineOf } = await readYaml(path, "benchmark");
  const placeholder = { metadata: { name: "", version: "", split: null, verifier: null }, text };
  const at = (key: string) => `${path}:${lineOf([key])}`;
  if (!isRecord(value)) {
    mistakes.add({
      where: path,
      got: quoteValue(value),
      expected: `an object with name and version (${known.join(", ")})`,
      fix: "Write `name: …` and `version: …`.",
    });
    return placeholder;
  }
  const fields = value;
  for (const key of Object.keys(fields)) {
    if (known.includes(key)) continue;
    mistakes.add({
      where: at(key),
      got: `the unknown key "${key}"`,
      expected: `some of ${known.join(", ")}`,
      fix: didYouMean(key, known) ?? "Remove it.",
    });
  }
  const readText = (key: "name" | "version" | "description"): string => {
    const given = fields[key];
    if (typeof given === "string" && given.trim() !== "") return given;
    const got = key in fields ? `${key} = ${quoteValue(given)}` : `no ${key}`;
    const fix = given === undefined ? `Add \`${key}: …\`.` : "Write it in quotes.";
    mistakes.add({ where: key in fields ? at(key) : path, got, expected: `${key}: a string`, fix });
    return "";
  };
  if ("description" in fields) readText("description");
  const metadata = { name: readText("name"), version: readText("version") };
  return { metadata: { ...metadata, ...defaultsOf(fields, at, mistakes) }, text };
}

function defaultsOf(
  { split, verifier }: Readonly<Record<string, unknown>>,
  at: (key: string) => string,
  mistakes: Mistakes,
): TaskDefaults {
  if (split !== undefined && !splits.includes(split as Split)) {
    const expected = `split: ${splits.join(" or ")}`;
    mistakes.add({
      where: at("split"),
      got: quoteValue(split),
      expected,
      fix: "Correct it, or leave it out.",
    });
  }
  let spec: VerifierSpec | null = null;
  try {
    if (verifier !== undefined) spec = verifierSpec(verifier);
  } catch (error) {
    mistakes.keep(error, at("verifier"));
  }
  return { split: (split as Split | undefined) ?? null, verifier: spec };
}
