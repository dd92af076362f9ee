import { join } from "node:path";
import { fileStore } from "@periodic-eval/core/snapshots";
import { exampleSnapshot } from "@periodic-eval/core/testing";
import { parseHTML } from "linkedom";
import { afterAll, beforeAll, expect, it } from "vitest";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";
import { resultsServer } from "./results-server.ts";

const root = temporaryFolder(afterAll);
beforeAll(async () => {
  const store = fileStore(join(root, "run"));
  // 300 answers of 2,000 characters are more than one part of the file.
  const rows = Array.from({ length: 600 }, (_, at) => ({
    id: `r${at}`,
    text: at % 2 === 0 ? `answer ${at / 2}, größe ${"x".repeat(2000)}` : null,
  }));
  await store.put(exampleSnapshot({ phase: "em", step: 100 }), rows);
  await store.close?.();
});

const server = resultsServer({ root, maxFileBytes: 100_000 });

it.each([
  [1, "50 of 300", "answer 0,", ["later answers →"]],
  [4, "151 to 200 of 300", "answer 150,", ["← earlier answers", "later answers →"]],
  [6, "251 to 300 of 300", "answer 250,", ["← earlier answers"]],
  [9, "none of 300 on this page", undefined, ["← earlier answers"]],
])(
  "shows page %i of a run's answers, from a file larger than the limit of whole files",
  async (number, counts, first, links) => {
    const reply = await server.request(`/v1/eval?results_dir=run&page=${number}`);
    const page = parseHTML(await reply.text()).document;
    const texts = [...page.querySelectorAll(".answer pre")].map((one) => one.textContent);
    expect(texts).toHaveLength(first === undefined ? 0 : 50);
    expect(texts[0]?.slice(0, first?.length)).toBe(first);
    expect([...page.querySelectorAll("summary span")].map((one) => one.textContent)).toContain(
      `step 100 · ${counts}`,
    );
    expect([...page.querySelectorAll(".pagination a")].map((one) => one.textContent)).toEqual(links);
  },
);

it.each([
  ["", 0, 300],
  ["&page=2&per_page=7", 7, 7],
  ["&page=50&per_page=7", 0, 0],
])("returns the answers of a run as JSON (%s)", async (query, from, count) => {
  const headers = { Accept: "application/json" };
  const reply = await server.request(`/v1/eval?results_dir=run${query}`, { headers });
  const { answers } = (await reply.json()) as {
    readonly answers: readonly {
      readonly count: number;
      readonly rows: readonly { readonly text: string }[];
    }[];
  };
  expect(answers.map((one) => [one.count, one.rows.length])).toEqual([[300, count]]);
  if (count > 0) expect(answers[0]!.rows[0]!.text).toContain(`answer ${from}, größe`);
});
