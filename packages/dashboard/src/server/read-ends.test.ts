import { cp, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseHTML } from "linkedom";
import { afterAll, beforeAll, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { writeSampleRun } from "../run/sample-run.test-data.ts";
import { resultsServer } from "./results-server.ts";

// Ten runs of 12 snapshots.
const root = temporaryFolder(afterAll);
beforeAll(async () => {
  await writeSampleRun(join(root, "run-0"));
  for (let at = 1; at < 10; at++) await cp(join(root, "run-0"), join(root, `run-${at}`), { recursive: true });
  for (let at = 0; at < 10; at++) {
    const time = new Date(Date.UTC(2026, 5, 28 - at));
    await utimes(join(root, `run-${at}`, "periodic_eval", "index.jsonl"), time, time);
  }
});

const text = (element: Element | null | undefined) => element?.textContent?.replace(/\s+/g, " ").trim();

async function listed() {
  const reply = await resultsServer({ root }).request("/v1/eval");
  const page = parseHTML(await reply.text()).document;
  return [...page.querySelectorAll("article.run")].map((entry) => ({
    name: text(entry.querySelector(".title")),
    state: text(entry.querySelector(".state")),
    line: text(entry.querySelector(".summary-line")),
    entry,
  }));
}

it("lists a run from the ends of its last phase, with the same state and summary as in full", async () => {
  const entries = await listed();
  expect(entries).toHaveLength(10);
  for (const { state, line } of entries) {
    expect(state).toBe("✓ finished");
    expect(line).toBe("em capability 90.0 % → 63.0 % ▼ worse at 1.0 %");
  }
  expect(entries.at(-1)!.entry.querySelector("a")!.getAttribute("href")).toBe("?results_dir=run-9");
});

it("reads a run in full if an end is damaged or missing, and names the damage", async () => {
  const at = (run: string, step: number) =>
    join(root, run, "periodic_eval", "em", `capability_step_${step}.json`);
  await writeFile(at("run-8", 60), (await readFile(at("run-8", 60), "utf8")).replace("0.63", "0.99"));
  await rm(at("run-9", 0));
  const entries = await listed();
  expect(text(entries.find(({ name }) => name === "run-8")!.entry)).toContain("edited or damaged");
  expect(text(entries.find(({ name }) => name === "run-9")!.entry)).not.toContain("damaged");
});
