import { appendFileSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  at,
  begins,
  capabilityAt,
  expectedLosses,
  logKilledRun,
  temporaryFolder,
} from "../logged-run.test-data.ts";
import { csvLogger } from "./csv.ts";
import { jsonlLogger } from "./jsonl.ts";

describe("JSONL", () => {
  const read = (path: string) =>
    readFileSync(path, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it("holds each step and each look once, whatever was killed, in the order told", async () => {
    const path = join(await temporaryFolder(), "logs", "run.jsonl");
    await logKilledRun(
      () => jsonlLogger({ path }),
      () => appendFileSync(path, '{"kind": "train", "pha'),
    );
    const records = read(path);
    const losses = records
      .filter(({ kind }) => kind === "train")
      .map(({ run_step, metrics }) => [run_step, Number((metrics as { loss: number | "NaN" }).loss)]);
    expect(losses).toEqual(expectedLosses);
    const looks = records.filter(({ kind }) => kind === "snapshot");
    expect(looks.map(({ phase, step, run_step, status }) => [phase, step, run_step, status])).toEqual([
      ["coupling", 0, 0, "complete"],
      ["em", 0, 10, "complete"],
      ["coupling", 9, 9, "complete"],
      ["em", 2, 12, "complete"],
      ["em", 5, 15, "complete"],
      ["em", 10, 20, "complete"],
      ["em", 9, 19, "skipped"],
    ]);
    expect(looks[4]).toMatchObject({
      pct: 50,
      metrics: { accuracy: { value: 0.25, n: 4, ci95: [0.15, 0.85] } },
    });
  });

  it("has what a look failed with replaced by what it gave when it was measured again, also in a resumed run", async () => {
    const path = join(await temporaryFolder(), "run.jsonl");
    const failed = { ...capabilityAt("a", 4, 4, null), status: "failed" as const, metrics: {} };
    const first = jsonlLogger({ path });
    await first.begin?.(begins("a", 0));
    await first.snapshot?.(failed);
    await first.snapshot?.({ ...failed, step: 8 });
    await first.snapshot?.({ ...failed, id: "another" });
    await first.close?.();
    const second = jsonlLogger({ path });
    const standing = [failed, { ...failed, id: "another" }];
    await second.begin?.(begins("a", 4, { standing }));
    expect(read(path).map(({ id, step, status }) => [id, step, status])).toEqual([
      ["capability", 4, "failed"],
      ["another", 4, "failed"],
    ]);
    await second.snapshot?.(capabilityAt("a", 4, 4, 0.5));
    await second.close?.();
    expect(read(path).map(({ id, step, status }) => [id, step, status])).toEqual([
      ["another", 4, "failed"],
      ["capability", 4, "complete"],
    ]);
  });

  it("drops a phase that begins anew, and keeps lines that it does not know", async () => {
    const path = join(await temporaryFolder(), "run.jsonl");
    await writeFile(path, 'a note\n{"phase": "b", "step": 3}\n{"phase": "a", "step": 3}\n');
    const logger = jsonlLogger({ path });
    await logger.begin?.(begins("a", 0));
    await logger.close?.();
    expect(readFileSync(path, "utf8")).toBe('a note\n{"phase": "b", "step": 3}\n');
  });

  it("has a record for each time that metrics of a step are told, and those of a later step dropped on resume", async () => {
    const path = join(await temporaryFolder(), "run.jsonl");
    const tell = async (step: number) => {
      const logger = jsonlLogger({ path });
      await logger.begin?.(begins("a", step - 1));
      await logger.train?.({ loss: step }, at("a", step));
      await logger.train?.({ eval_loss: 10 * step }, at("a", step));
      await logger.close?.();
    };
    for (const step of [1, 2, 2]) await tell(step);
    expect(read(path).map(({ step, metrics }) => [step, metrics])).toEqual([
      [1, { loss: 1 }],
      [1, { eval_loss: 10 }],
      [2, { loss: 2 }],
      [2, { eval_loss: 20 }],
    ]);
  });

  it("leaves out what is still graded", async () => {
    const path = join(await temporaryFolder(), "run.jsonl");
    const logger = jsonlLogger({ path });
    await logger.snapshot?.({ ...capabilityAt("a", 1, 1, null), status: "grading" });
    await logger.snapshot?.(capabilityAt("a", 1, 1, 0.5));
    await logger.close?.();
    expect(read(path)).toHaveLength(1);
  });

  it("says where it cannot write", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "file"), "");
    const path = join(folder, "file", "run.jsonl");
    expect(() => jsonlLogger({ path }).train?.({ loss: 1 }, at("a", 1))).toThrow(
      `[periodic-eval] ${path}: got EEXIST (a file stands where a folder should be), expected a folder`,
    );
  });
});

describe("CSV", () => {
  it("holds each value once under one header, unknown as nothing", async () => {
    const path = join(await temporaryFolder(), "run.csv");
    await logKilledRun(
      () => csvLogger({ path }),
      () => appendFileSync(path, "em,7,17"),
    );
    const [header, ...rows] = readFileSync(path, "utf8").trimEnd().split("\r\n");
    expect(header).toBe(
      "phase,step,run_step,pct,id,evaluation,status,metric,persona,group,value,lo,hi,n,unit",
    );
    const cells = rows.map((row) => row.split(","));
    const losses = cells.filter((row) => row[7] === "loss").map((row) => [Number(row[2]), Number(row[10])]);
    expect(losses).toEqual(expectedLosses);
    expect(rows.filter((row) => row.includes("capability"))).toEqual([
      "coupling,0,0,0,capability,capability,complete,accuracy,,,0.5,0.15,0.85,4,share",
      "em,0,10,0,capability,capability,complete,accuracy,,,0.5,0.15,0.85,4,share",
      "coupling,9,9,90,capability,capability,complete,accuracy,,,0.75,0.15,0.85,4,share",
      "em,2,12,20,capability,capability,complete,accuracy,,,0.75,0.15,0.85,4,share",
      "em,5,15,50,capability,capability,complete,accuracy,,,0.25,0.15,0.85,4,share",
      "em,10,20,100,capability,capability,complete,accuracy,,,,0.15,0.85,4,share",
    ]);
  });

  it("keeps its rows where their ends were changed, by an editor or Git", async () => {
    const path = join(await temporaryFolder(), "run.csv");
    const first = csvLogger({ path });
    for (const step of [1, 2]) await first.train?.({ loss: step }, at("a", step));
    await first.close?.();
    const written = readFileSync(path, "utf8");
    await writeFile(path, written.replaceAll("\r\n", "\n"));
    const second = csvLogger({ path });
    await second.begin?.(begins("a", 1));
    await second.train?.({ loss: 2 }, at("a", 2));
    await second.close?.();
    expect(readFileSync(path, "utf8")).toBe(written);
  });

  it("quotes what needs quotes, and keeps a row on its line", async () => {
    const path = join(await temporaryFolder(), "run.csv");
    const logger = csvLogger({ path });
    await logger.train?.({ 'a,"b"\nc': Number.NEGATIVE_INFINITY }, at("a", 1));
    await logger.close?.();
    expect(readFileSync(path, "utf8").split("\r\n")[1]).toBe('a,1,1,10,,,,"a,""b"" c",,,-Infinity,,,,');
  });
});
