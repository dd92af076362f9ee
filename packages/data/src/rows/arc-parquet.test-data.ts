import { existsSync, readFileSync } from "node:fs";
import { parquetWriteBuffer } from "hyparquet-writer";

/** A row of `allenai/ai2_arc`. */
export interface ArcRow {
  readonly id: string;
  readonly question: string;
  readonly choices: { readonly text: readonly string[]; readonly label: readonly string[] };
  readonly answerKey: string;
}

const realFile = "../shared/data/arc_challenge/test.jsonl";

/** Whether ARC-Challenge's test split is beside the project. */
export const hasRealArc = existsSync(realFile);

/** Returns ARC-Challenge's test split in the dataset's own format, with invented ids. */
export const realArcRows = (): readonly ArcRow[] =>
  readFileSync(realFile, "utf8")
    .trim()
    .split("\n")
    .map((line, at) => {
      const { question, choices, choice_labels, correct_answer } = JSON.parse(line) as {
        readonly question: string;
        readonly choices: readonly string[];
        readonly choice_labels: readonly string[];
        readonly correct_answer: string;
      };
      const listed = { text: choices, label: choice_labels };
      return { id: `Mercury_${at}`, question, choices: listed, answerKey: correct_answer };
    });

/** Two questions of fact. */
export const smallArcRows: readonly ArcRow[] = [
  {
    id: "Mercury_7",
    question: "Which is hot?",
    choices: { text: ["ice", "fire"], label: ["A", "B"] },
    answerKey: "B",
  },
  {
    id: "LEAP_8",
    question: "Which is cold?",
    choices: { text: ["ice", "fire", "tea"], label: ["1", "2", "3"] },
    answerKey: "1",
  },
];

const string = { type: "BYTE_ARRAY", repetition_type: "OPTIONAL", converted_type: "UTF8" } as const;
const listOfStrings = (name: string) =>
  [
    { name, repetition_type: "OPTIONAL", num_children: 1, converted_type: "LIST" },
    { name: "list", repetition_type: "REPEATED", num_children: 1 },
    { name: "element", ...string },
  ] as const;

/** Returns rows as Parquet with the schema of `allenai/ai2_arc`. */
export function arcParquet(rows: readonly ArcRow[]): Uint8Array {
  const schema = [
    { name: "root", num_children: 4 },
    { name: "id", ...string },
    { name: "question", ...string },
    { name: "choices", repetition_type: "OPTIONAL" as const, num_children: 2 },
    ...listOfStrings("text"),
    ...listOfStrings("label"),
    { name: "answerKey", ...string },
  ];
  const column = (name: keyof ArcRow) => ({ name, data: rows.map((row) => row[name]) });
  const columnData = [column("id"), column("question"), column("choices"), column("answerKey")];
  return new Uint8Array(parquetWriteBuffer({ schema, columnData }));
}
