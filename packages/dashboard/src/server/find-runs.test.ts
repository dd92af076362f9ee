import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseHTML } from "linkedom";
import { afterEach, beforeEach, expect, it } from "vitest";
import { sampleResults } from "../results/sample-results.test-data.ts";
import { writeSampleRun } from "../run/sample-run.test-data.ts";
import { containedFiles } from "./contained-files.ts";
import { findRuns } from "./find-runs.ts";
import { resultsServer, type ResultsServerOptions } from "./results-server.ts";
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

it("says that folders further down were not looked into, and finds what is in them by name", async () => {
  await writeResults("a", "b", "c", "d", "e");
  expect(await asked("")).toMatchObject({
    total: 0,
    is_whole: false,
    notices: [
      "No run was found in this folder or in those below it that were looked into.",
      "Folders more than 4 levels below this one were not looked into: results_dir in the address names one further down.",
    ],
  });
  expect(await asked("?results_dir=a")).toMatchObject({ paths: ["a/b/c/d/e"], is_whole: true, notices: [] });
  await writeResults("a", "b", "c", "d");
  expect(await asked("")).toMatchObject({ paths: ["a/b/c/d"], is_whole: false });
});

it.each(["metrics.json", "periodic_eval"])(
  "%s in the folder that is served hides no run below",
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

it("below results that nobody can read the search goes on", async () => {
  await writeResults();
  await writeResults("suites");
  await writeSampleRun(join(root, "suites", "trained"));
  expect((await asked("", {})).paths).toEqual(["suites/trained"]);
});

it("results above others are shown by themselves where they are named", async () => {
  await writeResults("suites");
  await writeResults("suites", "smoke");
  expect((await asked("")).paths).toEqual(["suites", "suites/smoke"]);
  expect((await asked("?results_dir=suites")).page.querySelectorAll("details.entry")).toHaveLength(0);
});

it("a run alone in the folder that is served is shown as one", async () => {
  await writeSampleRun(root);
  expect((await asked("")).page.querySelectorAll("#snapshots")).toHaveLength(1);
});

it("of damaged results nobody says that they are finished", async () => {
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
