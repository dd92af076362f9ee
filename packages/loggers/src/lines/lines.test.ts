import { appendFileSync, cpSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { at, begins, capabilityAt, expectedLosses, logKilledRun } from "../logged-run.test-data.ts";
import { csvLogger } from "./csv.ts";
import { jsonlLogger } from "./jsonl.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

/**
 * Returns the path of a file in a copy of its folder. A killed process has no files open, unlike a logger that a test abandons, and
 * Windows does not replace open files.
 */
function copied(path: string): string {
  const folder = join(temporaryFolder(), "copy");
  cpSync(dirname(path), folder, { recursive: true });
  return join(folder, basename(path));
}

describe("JSONL", () => {
  const read = (path: string) =>
    readFileSync(path, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it("contains each step and snapshot once after kills, in the order of logging", async () => {
    let path = join(temporaryFolder(), "logs", "run.jsonl");
    await logKilledRun(
      () => jsonlLogger({ path }),
      () => {
        path = copied(path);
        appendFileSync(path, '{"kind": "train", "pha');
      },
    );
    const records = read(path);
    const losses = records
      .filter(({ kind }) => kind === "train")
      .map(({ run_step, metrics }) => [run_step, Number((metrics as { loss: number | "NaN" }).loss)]);
    expect(losses).toEqual(expectedLosses);
    const snapshots = records.filter(({ kind }) => kind === "snapshot");
    expect(snapshots.map(({ phase, step, run_step, status }) => [phase, step, run_step, status])).toEqual([
      ["coupling", 0, 0, "complete"],
      ["em", 0, 10, "complete"],
      ["coupling", 9, 9, "complete"],
      ["em", 2, 12, "complete"],
      ["em", 5, 15, "complete"],
      ["em", 10, 20, "complete"],
      ["em", 9, 19, "skipped"],
    ]);
    expect(snapshots[4]).toMatchObject({
      pct: 50,
      metrics: { accuracy: { value: 0.25, n: 4, ci95: [0.15, 0.85] } },
    });
  });

  it("replaces a failed measurement by the repeated one, also in a resumed run", async () => {
    const path = join(temporaryFolder(), "run.jsonl");
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

  it("drops the lines of a phase that starts over and keeps unknown lines", async () => {
    const path = join(temporaryFolder(), "run.jsonl");
    const note = 'a note\n{"phase": "a", "step": 3}\n';
    const record = (phase: string) => `{"kind": "train", "phase": "${phase}", "step": 3}\n`;
    await writeFile(path, record("b") + note + record("a"));
    const logger = jsonlLogger({ path });
    await logger.begin?.(begins("a", 0));
    await logger.close?.();
    expect(readFileSync(path, "utf8")).toBe(record("b") + note);
  });

  it("writes a line each time metrics are logged, and drops lines of later steps on resume", async () => {
    const path = join(temporaryFolder(), "run.jsonl");
    const logStep = async (step: number) => {
      const logger = jsonlLogger({ path });
      await logger.begin?.(begins("a", step - 1));
      await logger.train?.({ loss: step }, at("a", step));
      await logger.train?.({ eval_loss: 10 * step }, at("a", step));
      await logger.close?.();
    };
    for (const step of [1, 2, 2]) await logStep(step);
    expect(read(path).map(({ step, metrics }) => [step, metrics])).toEqual([
      [1, { loss: 1 }],
      [1, { eval_loss: 10 }],
      [2, { loss: 2 }],
      [2, { eval_loss: 20 }],
    ]);
  });

  it("omits a snapshot that is being graded", async () => {
    const path = join(temporaryFolder(), "run.jsonl");
    const logger = jsonlLogger({ path });
    await logger.snapshot?.({ ...capabilityAt("a", 1, 1, null), status: "grading" });
    await logger.snapshot?.(capabilityAt("a", 1, 1, 0.5));
    await logger.close?.();
    expect(read(path)).toHaveLength(1);
  });

  it("names the path that it cannot write", async () => {
    const folder = temporaryFolder();
    await writeFile(join(folder, "file"), "");
    const path = join(folder, "file", "run.jsonl");
    expect(() => jsonlLogger({ path }).train?.({ loss: 1 }, at("a", 1))).toThrow(
      `[periodic-eval] ${path}: got EEXIST (a file is in the place of a folder), expected a folder, or a free name`,
    );
  });
});

describe("CSV", () => {
  it("contains each value once under one header, and leaves unknown values empty", async () => {
    let path = join(temporaryFolder(), "run.csv");
    await logKilledRun(
      () => csvLogger({ path }),
      () => {
        path = copied(path);
        appendFileSync(path, "em,7,17");
      },
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

  it("keeps its rows when an editor or Git has changed line ends", async () => {
    const path = join(temporaryFolder(), "run.csv");
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

  it("quotes special characters and keeps each row on one line", async () => {
    const path = join(temporaryFolder(), "run.csv");
    const logger = csvLogger({ path });
    await logger.train?.({ 'a,"b"\nc': Number.NEGATIVE_INFINITY }, at("a", 1));
    await logger.close?.();
    expect(readFileSync(path, "utf8").split("\r\n")[1]).toBe('a,1,1,10,,,,"a,""b"" c",,,-Infinity,,,,');
  });
});

describe.each([
  ["JSONL", jsonlLogger, '{"kind":"train","phase":"a","step":1,"metrics":{}}', '{"kind":"train","ph'],
  [
    "CSV",
    csvLogger,
    "phase,step,run_step,pct,id,evaluation,status,metric,persona,group,value,lo,hi,n,unit\r\na,1,1,10,,,,loss,,,2,,,,",
    "a,2,2,20,,,,lo",
  ],
] as const)("an existing %s file", (_, open, ours, torn) => {
  it.each([
    ["training rows", '{"messages":[]}\n{"messages":[]}\n'],
    ["training rows without a final line break", '{"prompt":"a","completion":"b"}'],
    ["another table", "question,answer\r\na,b\r\n"],
    ["a note", "kept by hand\n"],
  ])("is rejected at construction and left unchanged if it holds %s", async (_what, content) => {
    const path = join(temporaryFolder(), "file");
    await writeFile(path, content);
    const beginning = JSON.stringify(content.split(/\r?\n/)[0]).slice(1, 6);
    expect(() => open({ path })).toThrow(
      new RegExp(
        `file: got a file that begins with .*${beginning.slice(1, 4)}.*, expected a .* or no file. Choose another`,
      ),
    );
    expect(readFileSync(path, "utf8")).toBe(content);
  });

  it("is rejected when a phase begins, and left unchanged, if another program wrote it after construction", async () => {
    const path = join(temporaryFolder(), "file");
    const logger = open({ path });
    await writeFile(path, "kept by hand\n");
    await expect(async () => logger.begin?.(begins("a", 0))).rejects.toThrow("expected a");
    await expect(async () => logger.train?.({ loss: 1 }, at("a", 1))).rejects.toThrow("expected a");
    await expect(async () => logger.snapshot?.(capabilityAt("a", 1, 1, 0.5))).rejects.toThrow("expected a");
    expect(readFileSync(path, "utf8")).toBe("kept by hand\n");
  });

  it("keeps a complete last line without a line end, and drops a line that was cut off", async () => {
    const path = join(temporaryFolder(), "file");
    for (const last of ["", `\r\n${torn}`]) {
      await writeFile(path, ours + last);
      const logger = open({ path });
      await logger.begin?.(begins("a", 1));
      await logger.close?.();
      const lines = readFileSync(path, "utf8").split(/\r?\n/);
      expect([lines.includes(ours.split("\r\n").at(-1)!), lines.includes(torn)]).toEqual([true, false]);
    }
  });

  it("is rejected if another run wrote a phase of the same name, while each run can resume its own", async () => {
    const folder = temporaryFolder();
    const write = async (run: string, phase: string, loss: number, path = join(folder, "shared")) => {
      const logger = open({ path });
      await logger.begin?.(begins(phase, 0, { run: join(folder, run) }));
      await logger.train?.({ loss }, at(phase, 1));
      await logger.close?.();
      return readFileSync(path, "utf8");
    };
    const first = await write("one", "a", 0.25);
    await expect(write("two", "a", 0.5)).rejects.toThrow(
      `got lines of phase "a" that a run other than ${join(folder, "two")} wrote, expected a file of this run`,
    );
    expect(readFileSync(join(folder, "shared"), "utf8")).toBe(first);
    // Phases of other names may share the file, and a run that starts over drops only its own lines.
    const both = await write("two", "b", 0.5);
    expect(both.startsWith(first)).toBe(true);
    expect(await write("one", "a", 0.25)).toContain("0.5");
    const ownPath = join(folder, "one/log");
    await write("one", "a", 0.25, ownPath);
    const restarted = await write("one", "a", 0.125, ownPath);
    expect([restarted.includes("0.25"), restarted.includes("0.125")]).toEqual([false, true]);
    await expect(write("two", "a", 0.5, ownPath)).rejects.toThrow("expected a file of this run");
  });
});
