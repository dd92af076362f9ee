import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseHTML } from "linkedom";
import { expect, it } from "vitest";
import { sampleResults } from "../results/sample-results.test-data.ts";
import { resultsServer } from "./results-server.ts";
import { readResults, writeSampleRoot } from "./sample-root.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const text = (element: Element | null | undefined) => element?.textContent?.replace(/\s+/g, " ").trim();

it("shows all steps of a long run, and some of its points", async () => {
  const long = await writeSampleRoot();
  const file = join(long.root, "feedback", "polite", "steps.jsonl");
  const line = JSON.parse((await readFile(file, "utf8")).split("\n")[0]!) as object;
  const lines = Array.from({ length: 400 }, (_, step) => `${JSON.stringify({ ...line, step })}\n`);
  await writeFile(file, lines.join(""));
  const server = resultsServer({ root: long.root });
  const stepsOf = async (query: string) => {
    const page = parseHTML(await (await server.request(`/v1/eval${query}`)).text()).document;
    const rows = page.querySelectorAll("[aria-label='Steps of polite'] tbody tr");
    const [chart] = page.querySelectorAll("figure svg");
    return {
      rows: rows.length,
      last: text(rows[rows.length - 1]!.children[0]),
      dots: chart!.querySelectorAll("circle").length,
    };
  };
  // The baseline precedes the steps. Each dot has a second, transparent circle for the tooltip.
  const last = "step 399";
  const own = await stepsOf("?results_dir=feedback");
  expect(own).toMatchObject({ rows: 401, last });
  expect(own.dots).toBeGreaterThan(60);
  expect(own.dots).toBeLessThanOrEqual(2 * 120);
  await long.release();
  await rm(long.above, { recursive: true });
});

it("reads only the runs of the requested page", async () => {
  const many = temporaryFolder();
  for (let at = 0; at < 60; at++) {
    await mkdir(join(many, `suite-${at}`));
    await writeFile(
      join(many, `suite-${at}`, "metrics.json"),
      JSON.stringify({ runs: sampleResults.slice(0, 1) }),
    );
  }
  const read: string[] = [];
  const server = resultsServer({
    root: many,
    readResults(file, fs) {
      read.push(file);
      return readResults(file, fs);
    },
  });
  const { total, runs } = (await (
    await server.request("/v1/eval?per_page=7&page=3", { headers: { Accept: "application/json" } })
  ).json()) as { readonly total: number; readonly runs: readonly { readonly results_dir: string }[] };
  expect([total, runs.length]).toEqual([60, 7]);
  expect(read).toEqual(runs.map(({ results_dir: path }) => `${path}/metrics.json`));
});
