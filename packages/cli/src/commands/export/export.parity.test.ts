import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Row, Snapshot } from "@periodic-eval/contracts";
import { fileStore } from "@periodic-eval/store";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { asRead, hostileTexts, writeExportedRun } from "./exported-run.test-data.ts";

const bin = join(import.meta.dirname, "../../../../../.cache/inspect/bin");
const hasInspect = existsSync(join(bin, "inspect"));
const validates = existsSync(join(bin, "every_eval_ever"));

interface ReadLog {
  readonly task: string;
  readonly tags: readonly string[];
  readonly model: string;
  readonly status: string;
  readonly error: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly metrics: Readonly<Record<string, number>>;
  readonly summaries: number;
  readonly samples: readonly {
    readonly id: string;
    readonly epoch: number;
    readonly input: string;
    readonly text: string;
    readonly message: string;
    readonly target: string;
    readonly choices: readonly string[] | null;
    readonly scores: Readonly<Record<string, unknown>>;
  }[];
}

interface ReadExports {
  readonly logs: readonly ReadLog[];
  readonly hub: {
    readonly results: readonly Readonly<Record<string, unknown>>[];
    readonly name: string;
    readonly index: readonly { readonly metric: string; readonly value: number }[];
  };
}

const root = temporaryFolder(afterAll);

/** Exports a run in all formats, and returns what inspect_ai and huggingface_hub read. */
async function exportAndRead(runDir: string, name: string): Promise<ReadExports> {
  const folder = join(root, name);
  for (const format of ["inspect", "every-eval-ever", "hub"]) {
    const { code, err } = await runCommand(["export", runDir, "--to", format, "--out", join(folder, format)]);
    expect([code, err]).toEqual([0, ""]);
  }
  const script = join(import.meta.dirname, "read-exports.test-data.py");
  const text = execFileSync(join(bin, "python"), [script, folder], { encoding: "utf8", maxBuffer: 2 ** 28 });
  return JSON.parse(text) as ReadExports;
}

/** Validates with the program of Every Eval Ever, which checks schemas, paths, bounds, counts and hashes. */
function expectValid(name: string): void {
  const cwd = join(root, name, "every-eval-ever");
  const args = ["validate", "--format", "json", "data/*/*/*/*.json*"];
  const reports = JSON.parse(
    execFileSync(join(bin, "every_eval_ever"), args, { cwd, encoding: "utf8", maxBuffer: 2 ** 26 }),
  ) as readonly { readonly valid: boolean; readonly errors: unknown; readonly warnings: unknown }[];
  expect(reports.length).toBeGreaterThan(0);
  for (const { valid, errors, warnings } of reports)
    expect([valid, errors, warnings]).toEqual([true, [], []]);
}

describe.runIf(hasInspect)("the run of a demo", () => {
  const runDir = join(root, "run");
  let read: ReadExports;
  let snapshots: readonly { readonly snapshot: Snapshot; readonly rows: readonly Row[] }[];

  beforeAll(async () => {
    const args = ["demo", "--steps", "10", "--run-dir", runDir];
    expect((await runCommand(args)).code).toBe(0);
    read = await exportAndRead(runDir, "demo");
    const store = fileStore(runDir);
    const list = await store.list();
    snapshots = await Promise.all(
      list.map(async (snapshot) => ({ snapshot, rows: await store.rows(snapshot) })),
    );
  }, 300_000);

  const logOf = ({ phase, id, step }: Snapshot) =>
    read.logs.find(({ task, tags }) => task === `${phase}/${id}` && tags.includes(`step:${step}`))!;

  it("has a log per measurement, with its metrics, model, receipt and provenance", () => {
    expect(read.logs).toHaveLength(snapshots.length);
    for (const { snapshot } of snapshots) {
      const log = logOf(snapshot);
      const known = Object.entries(snapshot.metrics).filter(([, { value }]) => value !== null);
      expect(log.metrics).toEqual(Object.fromEntries(known.map(([name, { value }]) => [name, value])));
      expect([log.model, log.status]).toEqual(["micro-world", "success"]);
      expect(log.metadata).toMatchObject({ receipt: snapshot.receipt, provenance: snapshot.provenance });
    }
  });

  it("has every answer with its text, in which the scores add up to the metrics", () => {
    for (const { snapshot, rows } of snapshots) {
      const { samples, summaries } = logOf(snapshot);
      const answers = rows
        .map((row) => row as unknown as Readonly<Record<string, unknown>>)
        .filter(({ kind }) => kind !== "anchor");
      expect([samples.length, summaries]).toEqual([answers.length, answers.length]);
      const of = (pick: (sample: ReadLog["samples"][number]) => unknown) => sorted(samples.map(pick));
      expect(of(({ input }) => input)).toEqual(sorted(answers.map(({ question }) => question)));
      const share = (name: string, value: unknown) =>
        samples.filter(({ scores }) => scores[name] === value).length / samples.length;
      if (snapshot.id === "capability") {
        expect(of(({ text }) => text)).toEqual(sorted(answers.map(({ predicted }) => predicted)));
        expect(share("correct", "C")).toBeCloseTo(snapshot.metrics["accuracy"]!.value!, 12);
      } else {
        expect(of(({ text }) => text)).toEqual(sorted(answers.map(({ text }) => text)));
        if (snapshot.id === "alignment")
          expect(share("misaligned", 1)).toBeCloseTo(snapshot.metrics["misaligned"]!.value!, 12);
      }
    }
  });

  it("has the last measurement of each callback on the hub's page", () => {
    const last = (id: string) => snapshots.findLast(({ snapshot }) => snapshot.id === id)!.snapshot;
    expect(read.hub.name).toBe("micro-world");
    expect(read.hub.index.length).toBeGreaterThan(0);
    for (const { metric, value } of read.hub.index) {
      const id = { accuracy: "capability", misaligned: "alignment", leakage_rate: "leakage" }[metric]!;
      expect(value).toBe(last(id).metrics[metric]!.value);
    }
  });

  it("has logs that `inspect log dump` prints", () => {
    const folder = join(root, "demo", "inspect");
    const dump = execFileSync(join(bin, "inspect"), ["log", "dump", join(folder, readdirSync(folder)[0]!)], {
      encoding: "utf8",
      maxBuffer: 2 ** 26,
    });
    expect(JSON.parse(dump)).toMatchObject({ version: 2, status: "success" });
  });

  it.runIf(validates)("has valid records of Every Eval Ever", () => expectValid("demo"));
});

describe.runIf(hasInspect)("hostile texts", () => {
  let read: ReadExports;
  beforeAll(async () => {
    const runDir = join(root, "hostile-run");
    await writeExportedRun(runDir);
    read = await exportAndRead(runDir, "hostile");
  }, 120_000);

  it("are read as they are", () => {
    const { samples } = read.logs.find(({ task }) => task === "em/alignment")!;
    const texts = Object.values(hostileTexts).map(asRead);
    expect(samples.map(({ id, epoch, input, text }) => [id, epoch, input, text])).toEqual(
      texts.map((text, at) => [`row-${at}`, at + 1, text, text]),
    );
    expect(samples.filter(({ text }) => text !== "").map(({ message }) => message)).toEqual(
      texts.filter((text) => text !== ""),
    );
    expect(read.logs.find(({ task }) => task === "em/kl")).toMatchObject({
      status: "error",
      error: "out of memory",
      samples: [],
    });
  });

  it("leave the hub's entry as huggingface_hub reads it", () => {
    expect(read.hub.results).toMatchObject([
      { dataset_id: "allenai/ai2_arc", task_id: "ARC-Challenge", dataset_revision: "c0ffee", value: 0.5 },
    ]);
  });

  it.runIf(validates)("stay valid records of Every Eval Ever", () => expectValid("hostile"));
});

it.skipIf(hasInspect)("needs inspect_ai in .cache/inspect: packages/cli/requirements.txt", () => {});

const sorted = (values: readonly unknown[]): unknown[] =>
  values.toSorted((a, b) => (String(a) < String(b) ? -1 : 1));
