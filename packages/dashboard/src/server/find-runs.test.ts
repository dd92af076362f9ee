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
async function request(query: string, options: Partial<ResultsServerOptions> = { readResults }) {
  const server = resultsServer({ root, ...options });
  const data = (await (
    await server.request(`/v1/eval${query}`, { headers: { Accept: "application/json" } })
  ).json()) as Data;
  const page = parseHTML(await (await server.request(`/v1/eval${query}`)).text()).document;
  const notices = [...page.querySelectorAll("header .notice")].map((one) => one.textContent);
  return { ...data, paths: data.runs?.map(({ results_dir: path }) => path).toSorted(), notices, page };
}

it("reports that deeper folders were not searched, and finds their runs if results_dir names a parent", async () => {
  await writeResults("a", "b", "c", "d", "e");
  expect(await request("")).toMatchObject({
    total: 0,
    is_whole: false,
    notices: [
      "There are no runs in this folder or in the searched folders below it.",
      "Folders more than 4 levels below this one were not searched. To open a deeper folder, set results_dir in the address.",
    ],
  });
  expect(await request("?results_dir=a")).toMatchObject({
    paths: ["a/b/c/d/e"],
    is_whole: true,
    notices: [],
  });
  await writeResults("a", "b", "c", "d");
  expect(await request("")).toMatchObject({ paths: ["a/b/c/d"], is_whole: false });
});

it.each(["metrics.json", "periodic_eval"])(
  "finds runs below a served folder that contains %s",
  async (stray) => {
    await writeSampleRun(join(root, "trained"));
    await writeResults("suites", "one");
    await (stray === "metrics.json" ? writeResults() : writeSampleRun(root));
    const { paths, page } = await request("");
    expect(paths).toEqual(["", "suites/one", "trained"]);
    const links = [...page.querySelectorAll(".run > a")].map((link) => link.getAttribute("href")!);
    expect(links.toSorted()).toEqual(["?results_dir=suites%2Fone", "?results_dir=trained", "?steps=all"]);
    const ofFolder = await request("?steps=all");
    expect([ofFolder.runs?.length ?? null, ofFolder.page.querySelectorAll("article.run").length]).toEqual([
      stray === "metrics.json" ? 1 : null,
      0,
    ]);
  },
);

it("searches below a folder whose results are not shown", async () => {
  await writeResults();
  await writeResults("suites");
  await writeSampleRun(join(root, "suites", "trained"));
  expect((await request("", {})).paths).toEqual(["suites/trained"]);
});

it("shows only the results that results_dir names, without those in folders below", async () => {
  await writeResults("suites");
  await writeResults("suites", "smoke");
  expect((await request("")).paths).toEqual(["suites", "suites/smoke"]);
  expect((await request("?results_dir=suites")).page.querySelectorAll("article.run")).toHaveLength(0);
});

it("shows the page of a run if the served folder is that run and contains no other", async () => {
  await writeSampleRun(root);
  expect((await request("")).page.querySelectorAll("#snapshots")).toHaveLength(1);
});

it("lists damaged results as unknown or interrupted, not as finished", async () => {
  await writeResults("whole");
  await writeResults("damaged");
  await writeFile(join(root, "damaged", "metrics.json"), "{");
  await writeResults("ended");
  await writeFile(join(root, "ended", "metrics.json"), "{");
  await writeFile(join(root, "ended", "metrics.sft.partial.json"), "{}");
  const { runs } = await request("");
  expect(Object.fromEntries(runs.map(({ results_dir: path, state }) => [path, state]))).toEqual({
    whole: "finished",
    damaged: "unknown",
    ended: "interrupted",
  });
});

it.skipIf(process.platform === "win32").each(["a\\b", "c:x", "C:\\runs"])(
  "lists and opens a run in a folder named %s",
  async (name) => {
    await writeSampleRun(join(root, "more", name));
    const { paths, page } = await request("");
    expect(paths).toEqual([`more/${name}`]);
    const link = page.querySelector(".run > a")!.getAttribute("href")!;
    expect((await request(link)).page.querySelectorAll("#snapshots")).toHaveLength(1);
  },
);

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
