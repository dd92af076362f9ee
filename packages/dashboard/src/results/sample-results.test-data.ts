import { shareEstimate, type Interval } from "@periodic-eval/core/statistics";
import type { ResultsRun } from "./paired-change.ts";

/** Number of documents by key, for a suite of MMLU (two subjects), GSM8K and a perplexity. */
const documents = {
  "mmlu/acc,none": 1000,
  "mmlu_anatomy/acc,none": 400,
  "mmlu_virology/acc,none": 600,
  "gsm8k/exact_match,strict-match": 200,
  "gsm8k/exact_match,flexible-extract": 200,
} as const;

type Key = keyof typeof documents;
const perplexity = "wiki/word_perplexity,none";

interface Sample {
  readonly name: string;
  readonly method: string | null;
  readonly right: Readonly<Record<Key, number>>;
  readonly perplexity: number | null;
}

const samples: readonly Sample[] = [
  { name: "base", method: null, right: right(160, 240, 20, 30), perplexity: 21.5 },
  {
    name: "sft-on-a-rather-long-name-of-a-run",
    method: "sft",
    right: right(190, 310, 44, 50),
    perplexity: 19.25,
  },
  { name: "dpo", method: "dpo", right: right(150, 190, 18, 26), perplexity: null },
];

function right(anatomy: number, virology: number, strict: number, flexible: number): Sample["right"] {
  return {
    "mmlu/acc,none": anatomy + virology,
    "mmlu_anatomy/acc,none": anatomy,
    "mmlu_virology/acc,none": virology,
    "gsm8k/exact_match,strict-match": strict,
    "gsm8k/exact_match,flexible-extract": flexible,
  };
}

/** Three runs of one suite. The last has no perplexity. */
export const sampleResults: readonly ResultsRun[] = samples.map((sample, day) => resultsRun(sample, day));

function resultsRun({ name, method, right: counts, perplexity: value }: Sample, day: number): ResultsRun {
  const keys = Object.keys(documents) as readonly Key[];
  const shares = keys.map((key) => [key, shareEstimate(counts[key], documents[key])] as const);
  const entries = <T>(of: (estimate: ReturnType<typeof shareEstimate>) => T, other: T) =>
    Object.fromEntries([
      ...shares.map(([key, estimate]) => [key, of(estimate)] as const),
      [perplexity, other],
    ]);
  return {
    name,
    method,
    model: "org/tiny",
    adapter: method === null ? null : `adapters/${method}`,
    config_hash: "pe128:0123456789abcdef",
    config_path: "suites/small.yaml",
    timestamp: `2026-01-0${day + 1}T03:04:05.000Z`,
    metrics: entries((one) => one.value, value),
    stderr: entries((one) => one.stderr, value === null ? null : 0.5),
    n: { ...documents, [perplexity]: value === null ? 0 : 64 },
    ci95: entries<Interval | null>((one) => one.ci95, value === null ? null : [value - 1, value + 1]),
    higher_is_better: { ...Object.fromEntries(keys.map((key) => [key, true])), [perplexity]: false },
    run_hash: `pe128:run${day}`,
    suite: {
      seed: 42,
      smoke: false,
      tasks: { mmlu: { shots: 5, limit: 1000 }, gsm8k: { shots: 8 }, wiki: {} },
    },
  };
}
