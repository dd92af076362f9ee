import { appendFile, copyFile, mkdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileStore, nodeFiles } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { leakageFields } from "../answers/declared-fields.test-data.ts";
import { parseHTML } from "linkedom";
import { beforeEach, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import type { AnswersData } from "../page-data/answers-data.ts";
import { resultsServer } from "./results-server.ts";

const rows = Array.from({ length: 120 }, (_, at) => ({
  id: `r${at}`,
  text: `größe ${at}`,
  hit: at % 2 === 0,
}));
const json = { headers: { Accept: "application/json" } };
let root: string;
let server: ReturnType<typeof resultsServer>;
let samples: string;

beforeEach(async () => {
  root = temporaryFolder();
  const store = fileStore(join(root, "run"));
  for (const step of [50, 100])
    await store.put(exampleSnapshot({ answer_fields: leakageFields, phase: "em", step }), rows);
  await store.close!();
  samples = join(root, "run/periodic_eval/em/capability_step_100.samples.jsonl");
  // Less than the file of rows has: a large file is read in parts.
  server = resultsServer({ root, maxFileBytes: 4000 });
});

const answersOf = async (id = "capability") => {
  const query = `results_dir=run&phase=em&id=${id}&step=100`;
  const data = (await (await server.request(`/v1/eval/answers?${query}`)).json()) as AnswersData;
  return data.measurements[0]!;
};

const edit = async (change: (text: string) => string) =>
  writeFile(samples, change(await readFile(samples, "utf8")));

it.each([
  ["a flipped verdict", () => edit((text) => text.replace('"hit":true', '"hit":false'))],
  ["an edit on another page than the shown one", () => edit((text) => text.replace("größe 119", "size 119"))],
  ["deleted rows", () => edit((text) => text.split("\n").toSpliced(3, 5).join("\n"))],
  ["swapped rows", () => edit((text) => `${text.trimEnd().split("\n").reverse().join("\n")}\n`)],
  ["an added row", () => appendFile(samples, '{"id":"x","text":"forged"}\n')],
  ["a cut inside of a character", () => truncate(samples, 20)],
  ["an empty file", () => truncate(samples, 0)],
  [
    "a byte that is not UTF-8",
    async () => {
      const bytes = await readFile(samples);
      bytes[bytes.length - 4] = 0xff;
      await writeFile(samples, bytes);
    },
  ],
  [
    "the rows of another step",
    async () => {
      await writeFile(samples, '{"id":"x","text":"forged"}\n');
      await copyFile(samples, samples.replace("100", "50"));
    },
  ],
  ["a line that is not JSON", () => edit((text) => text.replace("{", ""))],
  ["no file", () => rm(samples)],
])("shows a problem and no answers of rows with %s", async (_, damage) => {
  await damage();
  const reply = await server.request("/v1/eval?results_dir=run");
  const text = await reply.text();
  expect(reply.status).toBe(200);
  expect(parseHTML(text).document.querySelector("#problems")!.textContent).toContain(
    "capability_step_100.samples.jsonl",
  );
  expect(text).not.toContain("MiB");
  const { rows: shown, problem } = await answersOf();
  expect(shown).toEqual([]);
  expect(problem).toContain("capability_step_100.samples.jsonl");
  const data = await (await server.request("/v1/eval?results_dir=run", json)).json();
  expect(JSON.stringify(data)).toContain("capability_step_100.samples.jsonl");
});

it("shows the answers of unchanged rows", async () => {
  expect((await answersOf()).rows).toHaveLength(120);
});

it("shows the answers of rows that a session replaced, whose snapshot it has not renamed yet", async () => {
  const dying = {
    ...nodeFiles,
    rename: (from: string, to: string) =>
      to.endsWith("step_100.json") ? Promise.reject(new Error("killed")) : nodeFiles.rename(from, to),
  };
  const store = fileStore(join(root, "run"), { fs: dying });
  const graded = rows.map((row) => ({ ...row, text: row.text.replace("größe", "length") }));
  await store
    .put(exampleSnapshot({ answer_fields: leakageFields, phase: "em", step: 100, pct: 7 }), graded)
    .catch(() => undefined);
  await store.close!();
  expect((await answersOf()).rows![0]!.text).toBe("length 0");
});

it.each([
  ["was edited", "damaged rows", () => edit((text) => text.replace('"hit":true', '"hit":false'))],
  [
    "is not a file",
    "not readable",
    async () => {
      await rm(samples);
      await mkdir(samples);
    },
  ],
])(
  "shows the answers of all other measurements where one file of rows %s, and lists it as %s",
  async (_, kind, damage) => {
    const store = fileStore(join(root, "run"));
    await store.put(
      exampleSnapshot({
        answer_fields: leakageFields,
        id: "alignment",
        evaluation: "alignment",
        phase: "em",
        step: 100,
      }),
      rows,
    );
    await store.close!();
    await damage();
    const file = "em/capability_step_100.samples.jsonl";
    const page = parseHTML(await (await server.request("/v1/eval?results_dir=run")).text()).document;
    expect((await answersOf()).problem).not.toBeNull();
    expect((await answersOf("alignment")).rows).toHaveLength(120);
    // The script of the page requests the answers of the other measurements, also of the damaged callback.
    expect(page.getElementById("answers-data")).not.toBeNull();
    const places = [...page.querySelectorAll("#problems tbody tr")].map((row) =>
      [...row.children].slice(0, 2).map((cell) => cell.textContent),
    );
    expect(places).toEqual([[file, kind]]);
    const data = (await (await server.request("/v1/eval?results_dir=run", json)).json()) as {
      readonly problems: readonly object[];
    };
    expect(data.problems).toMatchObject([{ file }]);
  },
);
