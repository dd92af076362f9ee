import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseHTML } from "linkedom";
import { afterAll, beforeAll, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import type { AnswersData } from "../page-data/answers-data.ts";
import type { RunData } from "../page-data/run-data.ts";
import { manyRows, manySnapshots, rowsFile, writeLargeRoot } from "./large-root.test-data.ts";
import { resultsServer } from "./results-server.ts";

const root = temporaryFolder(afterAll);
beforeAll(() => writeLargeRoot(root));

type Server = ReturnType<typeof resultsServer>;

async function pageOf(server: Server, query: string) {
  const reply = await server.request(`/v1/eval${query}`);
  const { document } = parseHTML(await reply.text());
  const block = (id: string): unknown => JSON.parse(document.getElementById(id)?.textContent ?? "null");
  const data = block("run-data") as RunData | null;
  return {
    status: reply.status,
    live: block("live") as { readonly page: string; readonly isPartial: boolean },
    points: data?.curves[0]?.points.map(({ step }) => step) ?? [],
    sections: [...document.querySelectorAll("section[id]")].map(({ id }) => id),
    note: document.querySelector("[role=status]")?.textContent?.replaceAll(/\s+/g, " ").trim() ?? null,
    text: document.querySelector("main")!.textContent ?? "",
  };
}

it("sends a sample of a run with 1,200 measurements first: the ends and the newest, without sections that need all measurements", async () => {
  const { live, points, sections, note } = await pageOf(resultsServer({ root }), "?results_dir=snapshots");
  expect(live).toMatchObject({ page: "?results_dir=snapshots&view=whole", isPartial: true });
  // 240 evenly spaced measurements and the newest 50, of which 10 are among the 240.
  expect(points.length).toBe(280);
  expect([points[0], ...points.slice(-50)]).toEqual([
    1,
    ...Array.from({ length: 50 }, (_, at) => manySnapshots - 49 + at),
  ]);
  expect(note).toContain("280 of 1200 measurements");
  expect(sections).toEqual(["curves-1", "snapshots", "glossary"]);
});

it("sends all measurements as the whole page, and from then on as the page of the run", async () => {
  const server = resultsServer({ root });
  for (const query of ["?results_dir=snapshots&view=whole", "?results_dir=snapshots"]) {
    const { live, points, sections, note } = await pageOf(server, query);
    expect([live.isPartial, points.length, note]).toEqual([false, manySnapshots, null]);
    expect(sections).toContain("receipts");
  }
});

it("reads all measurements of a large run if one of the sample is damaged", async () => {
  const file = join(root, "snapshots", "periodic_eval", "em", "alignment_step_1200.json");
  const before = await readFile(file, "utf8");
  await writeFile(file, before.slice(0, 100));
  const { live, points, sections } = await pageOf(resultsServer({ root }), "?results_dir=snapshots");
  expect([live.isPartial, points.length]).toEqual([false, manySnapshots - 1]);
  expect(sections).toContain("problems");
  await writeFile(file, before);
});

async function rowsOf(server: Server, parameters: string) {
  const place = "results_dir=rows&phase=em&id=alignment&step=9";
  const reply = await server.request(`/v1/eval/answers?${place}${parameters}`);
  return ((await reply.json()) as AnswersData).measurements[0]!;
}

it.each([
  ["", 0],
  ["&first=19000&count=3", 19_000],
  ["&first=20000", 20_000],
  ["&first=30000", 30_000],
])("sends the rows of a large file before it is verified, on request (%s)", async (range, first) => {
  const server = resultsServer({ root });
  const early = await rowsOf(server, `${range}&verify=later`);
  expect(early).toMatchObject({ isVerified: false, total: manyRows, problem: null });
  const { isVerified, ...verified } = await rowsOf(server, range);
  expect(isVerified).toBeUndefined();
  expect(early).toEqual({ ...verified, isVerified: false });
  expect(verified.rows![0]?.text).toBe(first < manyRows ? `T ${first}` : undefined);
  expect(await rowsOf(server, `${range}&verify=later`)).toEqual(verified);
});

it("reports a damaged large file as soon as it is verified, and never sends its rows without saying so", async () => {
  const file = join(root, rowsFile);
  const before = await readFile(file, "utf8");
  await writeFile(file, before.replace('"T 15000"', '"U 15000"'));
  const server = resultsServer({ root });
  expect(await rowsOf(server, "&count=1&verify=later")).toMatchObject({ isVerified: false, problem: null });
  expect((await rowsOf(server, "&count=1")).problem).toContain("edited or damaged");
  await writeFile(file, before);
});

it("lists large runs as JSON, and sends all 1,200 snapshots of one", async () => {
  const server = resultsServer({ root });
  const headers = { Accept: "application/json" };
  const list = (await (await server.request("/v1/eval", { headers })).json()) as {
    readonly runs: readonly {
      readonly results_dir: string;
      readonly phases: readonly { readonly snapshots?: number }[];
    }[];
  };
  expect(list.runs.map(({ results_dir: path }) => path).sort()).toEqual(["rows", "snapshots"]);
  const one = (await (await server.request("/v1/eval?results_dir=snapshots", { headers })).json()) as {
    readonly snapshots: readonly unknown[];
  };
  expect(one.snapshots).toHaveLength(manySnapshots);
});

it.each(["eval?view=partly&", "eval/answers?verify=never&", "eval?verify=later&"])(
  "rejects %s as a wrong address",
  async (query) => {
    const reply = await resultsServer({ root }).request(`/v1/${query}results_dir=rows`);
    expect(reply.status).toBe(400);
  },
);
