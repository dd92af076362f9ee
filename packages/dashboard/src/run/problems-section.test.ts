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
  for (let at = 0; at < 120; at++)
    await store.put(
      exampleSnapshot({
        step: at,
        status: "skipped",
        reason: "over budget",
        receipt: [{ ...evidence, part: "tensors", advisory: true }],
      }),
      [],
    );
  await store.put(exampleSnapshot({ step: 190, receipt: [evidence] }), []);
  await store.put(exampleSnapshot({ step: 195 }), []);
  await store.close?.();
  await writeFile(join(runDir, "periodic_eval", "train", "capability_step_195.json"), '{"step": 9');
  const { document } = parseHTML(`<main>${problems(await readRun(runDir))!.markup}</main>`);
  const [inView, folded] = [...document.querySelectorAll("tbody")].map((body) =>
    [...body.children].map((row) => [...row.children].slice(0, 2).map(text)),
  );
  expect(inView!.slice(0, 4)).toEqual([
    ["train, capability, step 190", "disturbed"],
    ["train/capability_step_195.json", "unreadable"],
    ["train, capability, step 0", "skipped"],
    ["train, capability, step 1", "skipped"],
  ]);
  expect(inView).toHaveLength(200);
  expect(folded!.at(-1)![1]).toBe("advisory");
  expect(text(document.querySelector("summary"))).toBe(`${folded!.length} more problems`);
});

it("lists superseded snapshots until the run is finished", async () => {
  const store = fileStore(runDir);
  const at = (step: number, weights: string) => exampleSnapshot({ step, weights });
  for (const snapshot of [at(0, "a"), at(50, "a"), at(50, "b")]) {
    if (snapshot.weights === "b") await store.supersede(snapshot, "measured again");
    await store.put(snapshot, []);
  }
  const shown = async () => {
    const section = problems(await readRun(runDir));
    return section === null ? "" : text(parseHTML(section.markup).document.querySelector("tbody"));
  };
  expect(await shown()).toContain("superseded measured again");
  await store.put(exampleSnapshot({ step: 100, crossed: ["end"] }), []);
  await store.close?.();
  expect(await shown()).toBe("");
});
