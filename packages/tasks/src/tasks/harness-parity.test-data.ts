// Measures the tasks and lm-evaluation-harness on the same model and files.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { measure, type EvaluableModel, type Prompt } from "@periodic-eval/core";
import type { Peer } from "../../../../benchmarks/peers/peer.ts";
import { readDocuments } from "../documents/read-documents.ts";
import type { DataRow } from "@periodic-eval/data";
import type { ChoicesRow } from "../families/choices.ts";
import type { ScoredRolloutRow } from "../families/rollout.ts";
import { tasks } from "./registry.ts";

/** A task with the files that both sides read. */
export interface HarnessCase {
  readonly label: string;
  readonly task: string;
  readonly shots: number;
  readonly limit: number;
  /** Files by split, with the split names of the harness' task. */
  readonly files: Readonly<Record<string, string>>;
  readonly data: string;
  readonly fewshotPool?: string;
}

/** Maximum number of documents per case. */
export interface CaseSizes {
  /** Limit for tasks that compare choices. */
  readonly scored: number;
  readonly gsm8k: number;
  readonly ifeval: number;
}

/** Maximum difference of two log-likelihoods that count as equal. */
export const toleranceNats = 1e-3;

/** One MMLU subject per group, each with about 100 questions. */
const subjects = ["abstract_algebra", "global_facts", "us_foreign_policy"];

/**
 * Writes the files of `../shared/data` to a folder, as JSON Lines in the layout of the hub. ARC has no train split: its last 200
 * questions replace it.
 */
export async function harnessCases(
  source: string,
  folder: string,
  sizes: CaseSizes,
): Promise<readonly HarnessCase[]> {
  await mkdir(folder, { recursive: true });
  const write = async (name: string, rows: readonly object[]) => {
    const path = join(folder, `${name}.jsonl`);
    await writeFile(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    return path;
  };
  const arc = (await rowsOf(join(source, "arc_challenge/test.jsonl"))).map((row, at) => ({
    id: String(at),
    question: row["question"],
    choices: { text: row["choices"], label: row["choice_labels"] },
    answerKey: row["correct_answer"],
  }));
  const [test, train] = [
    await write("arc_test", arc.slice(0, -200)),
    await write("arc_train", arc.slice(-200)),
  ];
  const cases: HarnessCase[] = [0, 5].map((shots) => ({
    label: `arc_challenge ${shots}-shot`,
    task: "arc_challenge",
    shots,
    limit: sizes.scored,
    files: { train, validation: train, test },
    data: test,
    fewshotPool: train,
  }));
  for (const subject of subjects) {
    const [dev, test] = await Promise.all(
      ["dev", "test"].map(async (split) => {
        const rows = await rowsOf(join(source, `mmlu/${split}/${subject}_${split}.csv`));
        return write(
          `${subject}_${split}`,
          rows.map((row) => mmluRow(subject, row)),
        );
      }),
    );
    cases.push({
      label: `mmlu_${subject} 5-shot`,
      task: `mmlu_${subject}`,
      shots: 5,
      limit: sizes.scored,
      files: { dev: dev!, test: test! },
      data: test!,
      fewshotPool: dev!,
    });
  }
  const truthful = await rowsOf(join(source, "truthfulqa/TruthfulQA.csv"));
  const validation = await write("truthfulqa", truthful.map(truthfulRow));
  cases.push({
    label: "truthfulqa_mc2 0-shot",
    task: "truthfulqa_mc2",
    shots: 0,
    limit: sizes.scored,
    files: { validation },
    data: validation,
  });
  const [problems, solved] = [join(source, "gsm8k/test.jsonl"), join(source, "gsm8k/train.jsonl")];
  cases.push({
    label: "gsm8k 5-shot",
    task: "gsm8k",
    shots: 5,
    limit: sizes.gsm8k,
    files: { train: solved, test: problems },
    data: problems,
    fewshotPool: solved,
  });
  if (tasks["ifeval"] !== undefined) {
    const prompts = join(source, "ifeval/input_data.jsonl");
    const limit = sizes.ifeval;
    cases.push({
      label: "ifeval 0-shot",
      task: "ifeval",
      shots: 0,
      limit,
      files: { train: prompts },
      data: prompts,
    });
  }
  return cases;
}

const mmluRow = (subject: string, row: DataRow) => ({
  question: row["question"],
  subject,
  choices: [0, 1, 2, 3].map((at) => row[`choice${at}`]),
  answer: Number(row["answer"]),
});

function truthfulRow(row: DataRow) {
  const listed = (column: string) =>
    (row[column] as string)
      .split(";")
      .map((answer) => answer.trim())
      .filter(Boolean);
  const [right, wrong] = [listed("Correct Answers"), listed("Incorrect Answers")];
  const labels = [...right.map(() => 1), ...wrong.map(() => 0)];
  return { question: row["Question"], mc2_targets: { choices: [...right, ...wrong], labels } };
}

const rowsOf = async (path: string): Promise<readonly DataRow[]> =>
  (await readDocuments(path, path)).rows.map(({ row }) => row);

/** The harness' log entry for one document and filter. */
interface Sample {
  readonly doc_id: number;
  readonly filter: string;
  readonly arguments: readonly (readonly [context: string, continuation: unknown])[];
  readonly resps: readonly (readonly [unknown])[];
  readonly filtered_resps: readonly unknown[];
  readonly [metric: string]: unknown;
}

export interface Comparison {
  readonly label: string;
  readonly documents: number;
  /** Number of log-likelihoods; null for tasks that compare texts. */
  readonly requests: number | null;
  readonly largestNats: number | null;
  /** One line for each document that differs, with the difference. */
  readonly different: readonly string[];
  /** Our value and the harness' value of each metric. */
  readonly metrics: Readonly<Record<string, readonly [ours: number | null, theirs: number]>>;
}

/** Measures a case with the task and with the harness. */
export async function compareWithHarness(
  { label, task, shots, limit, files, data, fewshotPool }: HarnessCase,
  model: EvaluableModel,
  peer: Peer,
): Promise<Comparison> {
  const evaluation = tasks[task]!.open({
    data,
    shots,
    limit,
    ...(fewshotPool !== undefined && { fewshotPool }),
  });
  const items = (await evaluation.items(model as never)) as readonly { id: string; prompt: Prompt }[];
  const { rows, snapshot } = await measure(evaluation, model);
  const { samples, results } = await peer.ask<{
    readonly samples: readonly Sample[];
    readonly results: Readonly<Record<string, unknown>>;
  }>({ task, files, shots, limit });
  const prompts = new Map(items.map(({ id, prompt }) => [numberOf(id), prompt]));
  const ours = new Map(
    (rows as readonly (ChoicesRow | ScoredRolloutRow)[]).map((row) => [numberOf(row.item), row]),
  );
  let [requests, largestNats] = [0, 0];
  const different = samples.flatMap((sample) => {
    const [row, prompt] = [
      ours.get(sample.doc_id)!,
      prompts.get(sample.doc_id)! as { readonly text: string },
    ];
    const where = `document ${sample.doc_id}${sample.filter === "none" ? "" : ` (${sample.filter})`}`;
    const [theirPrompt] = sample.arguments[0]!;
    const isSamePrompt = prompt.text === theirPrompt;
    const differences = isSamePrompt
      ? []
      : [`${where}: another prompt, from character ${firstDifference(prompt.text, theirPrompt)}`];
    if (!("nats" in row)) return [...differences, ...differentTexts(where, row, sample)];
    const theirs = sample.resps.map(([answer]) => answer as readonly [nats: number, isGreedy: boolean]);
    requests += theirs.length;
    const apart = theirs.map(([nats], at) => Math.abs(nats - row.nats![at]!));
    largestNats = Math.max(largestNats, ...apart);
    const isGreedy = theirs.every(([, greedy], at) => greedy === row.isGreedy![at]);
    if (Math.max(...apart) >= toleranceNats || row.nats!.length !== theirs.length)
      differences.push(`${where}: ${Math.max(...apart).toExponential(1)} nats apart`);
    if (!isGreedy) differences.push(`${where}: another token is the most likely one`);
    return differences;
  });
  const metrics = Object.fromEntries(
    Object.entries(results).flatMap(([name, value]) => {
      const metric = name.replace(/,none$/, "");
      const own = snapshot.metrics[metric];
      return own === undefined || typeof value !== "number" ? [] : [[metric, [own.value, value] as const]];
    }),
  );
  const isScored = requests > 0;
  return {
    label,
    documents: ours.size,
    requests: isScored ? requests : null,
    largestNats: isScored ? largestNats : null,
    different,
    metrics,
  };
}

function differentTexts(
  where: string,
  row: ScoredRolloutRow,
  { filter, resps, filtered_resps, ...sample }: Sample,
): string[] {
  const [ours, theirs] = [row.text ?? "", String(resps[0]![0])];
  if (ours !== theirs)
    return [`${where}: other texts from character ${firstDifference(ours, theirs)} of ${theirs.length}`];
  const score = row.score as Readonly<Record<string, { readonly answer: string; readonly correct: boolean }>>;
  const own = score[filter];
  if (own === undefined) return [];
  const isSame = own.answer === filtered_resps[0] && Number(own.correct) === sample["exact_match"];
  return isSame
    ? []
    : [
        `${where}: ${own.answer} (${own.correct}) and ${String(filtered_resps[0])} (${String(sample["exact_match"])})`,
      ];
}

function firstDifference(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
}

const numberOf = (id: string): number => Number(id.split("/").at(-1));

/** Formats a comparison as a row of the table in docs/explanations/harness-parity.md. */
export function comparisonRow({
  label,
  documents,
  requests,
  largestNats,
  different,
  metrics,
}: Comparison): string {
  const values = Object.entries(metrics)
    .map(([name, [ours, theirs]]) => `${name} ${ours?.toFixed(4) ?? "none"} / ${theirs.toFixed(4)}`)
    .join("; ");
  const compared = requests === null ? "texts" : `${requests} log-likelihoods`;
  const largest = largestNats === null ? "" : largestNats.toExponential(1);
  return `| ${label} | ${documents} | ${compared} | ${largest} | ${different.length} | ${values} |`;
}
