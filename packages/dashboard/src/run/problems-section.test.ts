import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileStore, readRun } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { parseHTML } from "linkedom";
import { beforeEach, expect, it } from "vitest";
import { problems } from "./problems-section.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let runDir = "";
beforeEach(() => void (runDir = temporaryFolder()));

const text = (element: Element | null) => element?.textContent?.replace(/\s+/g, " ").trim();

it("lists disturbed training and damaged files first when it omits other problems", async () => {
  const store = fileStore(runDir);
  const evidence = { part: "weights", before: "a", after: "b", intact: false };
  for (let at = 0; at < 12; at++)
    await store.put(
      exampleSnapshot({
        step: 5 * at,
        status: "skipped",
        reason: "over budget",
        receipt: [{ ...evidence, part: "tensors", advisory: true }],
      }),
      [],
    );
  await store.put(exampleSnapshot({ step: 90, receipt: [evidence] }), []);
  await store.put(exampleSnapshot({ step: 95 }), []);
  await store.close?.();
  await writeFile(join(runDir, "periodic_eval", "train", "capability_step_95.json"), '{"step": 9');
  const { document } = parseHTML(
    problems(await readRun(runDir), { idPrefix: "", maxRows: 4, fullPage: "?results_dir=a" })!.markup,
  );
  const rows = [...document.querySelectorAll("tbody tr")].map((row) =>
    [...row.children].slice(0, 2).map(text),
  );
  expect(rows).toEqual([
    ["train, capability, step 90", "disturbed"],
    ["train/capability_step_95.json", "unreadable"],
    ["train, capability, step 0", "skipped"],
    ["train, capability, step 5", "skipped"],
  ]);
  expect(text(document.querySelector(".cut"))).toMatch(/^The first 4 of \d+ problems\. Show all \d+$/);
});

it("lists superseded snapshots until the run is finished", async () => {
  const store = fileStore(runDir);
  const at = (step: number, weights: string) => exampleSnapshot({ step, weights });
  for (const snapshot of [at(0, "a"), at(50, "a"), at(50, "b")]) {
    if (snapshot.weights === "b") await store.supersede(snapshot, "measured again");
    await store.put(snapshot, []);
  }
  const shown = async () => {
    const section = problems(await readRun(runDir), { idPrefix: "", maxRows: 9, fullPage: null });
    return section === null ? "" : text(parseHTML(section.markup).document.querySelector("tbody"));
  };
  expect(await shown()).toContain("superseded measured again");
  await store.put(exampleSnapshot({ step: 100, crossed: ["end"] }), []);
  await store.close?.();
  expect(await shown()).toBe("");
});
