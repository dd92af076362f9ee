// The outcome of a run: its files, without times and without names made from times. It must not depend on interruptions.
import { readRun } from "@periodic-eval/core/snapshots";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { CommandName } from "./commands.test-data.ts";
import { bytesIn, filesIn, readJson, readJsonLines } from "./files.test-data.ts";

type Fields = Readonly<Record<string, unknown>>;

/** An object without some of its keys. */
const without = (value: unknown, ...keys: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(value as Fields).filter(([key]) => !keys.includes(key)));

/** The outcome of each kind of run, as JSON. */
export const outcomes: Readonly<Record<CommandName, (folder: string) => Promise<unknown>>> = {
  training: async (folder) => ({
    ...(await trainedRun(folder, "second/step_6")),
    lines: (await readJsonLines(join(folder, "log.jsonl"))).map(lastingLine),
    table: await tableOf(join(folder, "log.csv")),
    points: (await readJsonLines(join(folder, "loggers/mlflow.jsonl"))).flatMap(lastingPoint),
    badRows: (await readJsonLines(join(folder, "bad_rows/second/dataset.jsonl"))).map((row) =>
      without(row, "where", "got"),
    ),
  }),
  dpo: async (folder) => ({
    ...(await trainedRun(folder, "dpo/step_6")),
    saved: (await filesIn(folder)).filter((file) => file.startsWith("saved/")),
  }),
  async feedback(folder) {
    const { preferences } = (await readJson(join(folder, "summary.json"))) as {
      readonly preferences: Fields;
    };
    return {
      // The first step is whole in both runs.
      steps: (await readJsonLines(join(folder, "brief/steps.jsonl")))
        .slice(1)
        .map((line) => without(line, "timestamp", "timing_s")),
      // Compliance with the prompts of training, and the reasons for unknown values, were added to the summary later. Collapse that
      // was not measured is null since then, and was an empty array before.
      summary: {
        ...without(
          preferences["brief"],
          "lora_id",
          "baseline_seen_compliance",
          "final_seen_compliance",
          "unknown",
        ),
        collapse_alerts: (preferences["brief"] as Fields)["collapse_alerts"] ?? [],
      },
      weights: await tensorsOf(join(folder, "brief/checkpoints/sdpo/step_3/trainables.safetensors")),
    };
  },
  async suite(folder) {
    const { runs } = (await readJson(join(folder, "metrics.json"))) as { readonly runs: readonly Fields[] };
    const job = join(folder, "jobs/base");
    const { identity, tasks } = (await readJson(join(job, "results.json"))) as Fields;
    return {
      runs: runs.map((run) => without(run, "timestamp")),
      identity,
      tasks: Object.values(tasks as Fields).map(lasting),
      samples: Object.values(await bytesIn(job, /^samples_gsm8k_/)).map(linesOf),
    };
  },
};

/** The end of a run of `train`: its last checkpoint, and the snapshots of the last step. */
async function trainedRun(folder: string, checkpoint: string) {
  const { phases, superseded, problems } = await readRun(folder);
  const last = join(folder, "checkpoints", checkpoint);
  const state = (await readJson(join(last, "trainer_state.json"))) as Fields;
  const rows = await bytesIn(join(folder, "periodic_eval"), /_step_6\.samples\.jsonl$/);
  return {
    superseded,
    problems,
    measured: phases.flatMap(({ snapshots }) =>
      snapshots.map(({ phase, id, step, status }) => [phase, id, step, status]),
    ),
    snapshots: phases.at(-1)!.snapshots.flatMap((one) => (one.step === 6 ? [lasting(one)] : [])),
    rows: Object.entries(rows).map(([file, lines]) => [file, linesOf(lines).map(lastingRow)]),
    // `weights` stands for the hashes of the files, which one other bit changes.
    state: { ...without(state, "files", "state_hash"), session: lastingSession(state["session"]) },
    files: Object.keys(state["files"] as Fields),
    weights: await tensorsOf(join(last, "trainables.safetensors")),
  };
}

const linesOf = (text: string): readonly unknown[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);

/** A snapshot without its times, the version that wrote it, the words of its receipt, and hashes, which d1b337b did not write. */
function lasting(snapshot: unknown): Fields {
  const { provenance, receipt, samples } = snapshot as Fields;
  return {
    ...without(snapshot, "created_at", "timing", "sha256", "warnings"),
    ...(samples != null && { samples: without(samples, "sha256") }),
    receipt: (receipt as readonly Fields[]).map(({ part, intact }) => ({ part, intact })),
    provenance: without(provenance, "created_by"),
  };
}

/** A row without what d1b337b did not write: rows of multiple choice had no texts. */
const lastingRow = (row: unknown): unknown =>
  "labels" in (row as Fields) ? without(row, "question", "choices") : row;

function lastingSession(session: unknown): Fields {
  const { progress } = session as Fields;
  return { ...without(session, "windowSeconds", "snapshots"), progress: without(progress, "elapsedSeconds") };
}

/** A line of `log.jsonl`. Snapshots are compared by their own files. */
function lastingLine(line: unknown): Fields {
  const { kind, phase, step, id, status, metrics } = line as Fields;
  if (kind === "snapshot") return { kind, phase, step, id, status };
  return { ...without(line, "elapsed_seconds"), metrics: without(metrics, "tokens_per_second") };
}

/** Which value stands where in `log.csv`, without the speed of training. */
async function tableOf(path: string): Promise<readonly string[]> {
  const [header, ...rows] = (await readFile(path, "utf8")).trimEnd().split("\r\n");
  const columns = header!.split(",");
  const of = (cells: readonly string[], name: string) => cells[columns.indexOf(name)]!;
  return rows
    .map((row) => row.split(","))
    .map((cells) => ["phase", "step", "id", "metric"].map((name) => of(cells, name)).join(" "))
    .filter((place) => !place.endsWith("tokens_per_second"));
}

/** Which points an outbox took. Their values are those of `log.jsonl`. */
function lastingPoint(line: unknown): readonly (readonly unknown[])[] {
  const { kind, point } = line as { readonly kind: string; readonly point: Fields };
  return kind === "point" ? [[point["of"], point["phase"], point["runStep"]]] : [];
}

/**
 * Every eighth number of a safetensors file, by tensor, with six digits: more than the tolerance asks for. The file begins with
 * the length of its header in eight bytes and the header in JSON.
 */
async function tensorsOf(path: string): Promise<Readonly<Record<string, readonly number[]>>> {
  const bytes = await readFile(path);
  const begin = 8 + Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString("utf8", 8, begin)) as Readonly<Record<string, TensorPlace>>;
  return Object.fromEntries(
    Object.entries(header).flatMap(([name, { data_offsets: place }]) => {
      if (place === undefined) return [];
      const [from, to] = place;
      const numbers = Array.from({ length: Math.ceil((to - from) / 32) }, (_, at) =>
        Number(bytes.readFloatLE(begin + from + 32 * at).toPrecision(6)),
      );
      return [[name, numbers]];
    }),
  );
}

/** An entry of the header. That of the metadata has no offsets. */
interface TensorPlace {
  readonly data_offsets?: readonly [from: number, to: number];
}
