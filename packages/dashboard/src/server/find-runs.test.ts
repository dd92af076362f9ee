import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseHTML } from "linkedom";
import { afterEach, beforeEach, expect, it } from "vitest";
import { sampleResults } from "../results/sample-results.test-data.ts";
import { writeSampleRun } from "../run/sample-run.test-data.ts";
import { containedFiles } from "./contained-files.ts";
import { findRuns } from "./find-runs.ts";
import { resultsServer } from "./results-server.ts";
import type { ResultsServerOptions } from "./server-options.ts";
import { readResults } from "./sample-root.test-data.ts";

let root = "";
beforeEach(async () => void (root = await realpath(await mkdtemp(join(tmpdir(), "find-")))));
afterEach(() => rm(root, { recursive: true }));

const writeResults = async (...names: string[]) => {
  await mkdir(join(root, ...names), { recursive: true });
  await writeFile(join(root, ...names, "metrics.json"), JSON.stringify({ runs: sampleResults.slice(0, 1) }));
};

interface Data {
  readonly total: number;
  readonly is_whole: boolean;
  readonly runs: readonly { readonly results_dir: string; readonly state: string }[];
}
async function asked(query: string, options: Partial<ResultsServerOptions> = { readResults }) {
  const server = resultsServer({ root, ...options });
  const data = (await (
    await server.request(`/v1/eval${query}`, { headers: { Accept: "application/json" } })
  ).json()) as Data;
  const page = parseHTML(await (await server.request(`/v1/eval${query}`)).text()).document;
  const notices = [...page.querySelectorAll("header .notice")].map((one) => one.textContent);
  return { ...data, paths: data.runs?.map(({ results_dir: path }) => path).toSorted(), notices, page };
}

it("states that deeper folders were not searched, and finds their runs by results_dir", async () => {
  await writeResults("a", "b", "c", "d", "e");
  expect(await asked("")).toMatchObject({
    total: 0,
    is_whole: false,
    notices: [
      "There are no runs in this folder or in the searched folders below it.",
      "Folders more than 4 levels below this one were not searched. To open a deeper folder, set results_dir in the address.",
    ],
  });
  expect(await asked("?results_dir=a")).toMatchObject({ paths: ["a/b/c/d/e"], is_whole: true, notices: [] });
  await writeResults("a", "b", "c", "d");
  expect(await asked("")).toMatchObject({ paths: ["a/b/c/d"], is_whole: false });
});

it.each(["metrics.json", "periodic_eval"])(
  "finds runs below a served folder that contains %s",
  async (stray) => {
    await writeSampleRun(join(root, "trained"));
    await writeResults("suites", "one");
    await (stray === "metrics.json" ? writeResults() : writeSampleRun(root));
    const { paths, page } = await asked("");
    expect(paths).toEqual(["", "suites/one", "trained"]);
    const links = [...page.querySelectorAll(".kind a")].map((link) => link.getAttribute("href")!);
    expect(links.toSorted()).toEqual(["?results_dir=suites%2Fone", "?results_dir=trained", "?steps=all"]);
    const own = await asked("?steps=all");
    expect([own.runs?.length ?? null, own.page.querySelectorAll("details.entry").length]).toEqual([
      stray === "metrics.json" ? 1 : null,
      0,
    ]);
  },
);

it("searches below results that are not shown", async () => {
  await writeResults();
  await writeResults("suites");
  await writeSampleRun(join(root, "suites", "trained"));
  expect((await asked("", {})).paths).toEqual(["suites/trained"]);
});

it("shows results alone if results_dir names them, although there are others below", async () => {
  await writeResults("suites");
  await writeResults("suites", "smoke");
  expect((await asked("")).paths).toEqual(["suites", "suites/smoke"]);
  expect((await asked("?results_dir=suites")).page.querySelectorAll("details.entry")).toHaveLength(0);
});

it("shows the page of a run if it is the only one in the served folder", async () => {
  await writeSampleRun(root);
  expect((await asked("")).page.querySelectorAll("#snapshots")).toHaveLength(1);
});

it("does not call damaged results finished", async () => {
  await writeResults("whole");
  await writeResults("damaged");
  await writeFile(join(root, "damaged", "metrics.json"), "{");
  await writeResults("ended");
  await writeFile(join(root, "ended", "metrics.json"), "{");
  await writeFile(join(root, "ended", "metrics.sft.partial.json"), "{}");
  const { runs } = await asked("");
  expect(Object.fromEntries(runs.map(({ results_dir: path, state }) => [path, state]))).toEqual({
    whole: "finished",
    damaged: "unknown",
    ended: "stopped",
  });
});

it("lists each folder once", async () => {
  await writeSampleRun(join(root, "trained"));
  await writeResults("suites", "one");
  const files = containedFiles(root);
  const listed: string[] = [];
  const { runs } = await findRuns(
    "",
    { ...files, list: (folder) => (listed.push(folder), files.list(folder)) },
    () => true,
  );
  expect(runs.map(({ path }) => path).toSorted()).toEqual(["suites/one", "trained"]);
  expect(listed.toSorted()).toEqual(["", "suites", "suites/one", "trained"]);
});
