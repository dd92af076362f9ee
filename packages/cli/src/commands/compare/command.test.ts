import { cp, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { MeasurementWarning, MetricValue } from "@periodic-eval/core";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { parse } from "csv-parse/sync";
import { afterAll, expect, it } from "vitest";
import { runCommand } from "../../run-command.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

/** Writes a run of one phase whose accuracy goes from `start` to `end`; returns its folder. */
async function writeRun(
  name: string,
  seed: string,
  start: number,
  end: number,
  {
    metric = {},
    ...last
  }: {
    readonly step?: number;
    readonly status?: "complete" | "partial";
    readonly metric?: Partial<MetricValue>;
    readonly warnings?: readonly MeasurementWarning[];
  } = {},
): Promise<string> {
  const runDir = join(folder, name);
  const store = fileStore(runDir);
  for (const [step, value] of [
    [0, start],
    [last.step ?? 100, end],
  ] as const) {
    const plain = exampleSnapshot({ phase: "em", step });
    const accuracy = {
      ...plain.metrics["accuracy"]!,
      ...metric,
      value,
      ci95: [value - 0.1, value + 0.1] as [number, number],
    };
    const metrics = { accuracy, "accuracy/doctor": accuracy, 'accuracy/astronomy, "old"': accuracy };
    const provenance = { ...plain.provenance, seed, evaluation: { personas: [{ id: "doctor" }] } };
    const ofEnd = {
      phase: "em",
      step: 0,
      n_pairs: 90,
      delta: -0.41,
      ci95: [-0.5, -0.3] as [number, number],
      test: null,
      p_value: null,
      alpha: null,
      minimal_detectable_change: null,
      verdict: null,
      exploratory: true,
    };
    const paired = { baseline: step === 0 ? null : { accuracy: ofEnd }, previous: null };
    const status = step === 0 ? "complete" : (last.status ?? "complete");
    const warnings = step === 0 ? [] : [...(last.warnings ?? [])];
    const weights = `${name}-${step}`;
    const written = {
      ...plain,
      weights,
      status,
      max_steps: 100,
      pct: step,
      metrics,
      paired,
      provenance,
      warnings,
    };
    await store.put(written, []);
  }
  await store.close?.();
  return runDir;
}

function cli(...args: string[]) {
  return runCommand(args);
}

it("leaves out a run whose end cannot be judged, and says the share", async () => {
  const message = "38 of 40 answers are incoherent: capability cannot be judged.";
  const warning = { kind: "incoherent", metrics: ["accuracy"], count: 38, total: 40, void: true, message };
  const runs = [
    await writeRun("judged", "1", 0.9, 0.9),
    await writeRun("void", "2", 0.9, 0.1, { warnings: [warning] }),
  ];
  const { out } = await cli("compare", ...runs.map((run) => `all=${run}`), "--json");
  const [accuracy] = JSON.parse(out).metrics;
  expect(accuracy.groups[0]).toMatchObject({ runs: 1, end: { value: 0.9 } });
  expect(accuracy.left_out).toEqual([
    { run: runs[1], group: "all", reason: `its measurement at the end cannot be judged: ${message}` },
  ]);
});

it("computes an interval over runs per condition and the difference between conditions", async () => {
  const control = [await writeRun("c1", "1", 0.9, 0.9), await writeRun("c2", "2", 0.8, 0.82)];
  const em = [
    await writeRun("e1", "1", 0.9, 0.5),
    await writeRun("e2", "2", 0.8, 0.5),
    await writeRun("e3", "3", 0.9, 0.4),
  ];
  const args = [...control.map((run) => `control=${run}`), ...em.map((run) => `em=${run}`)];
  const { code, out } = await cli("compare", ...args, "--json");
  expect(code).toBe(0);
  const { metrics } = JSON.parse(out);
  expect(metrics).toHaveLength(1);
  const [first, second] = metrics[0].groups;
  expect(first).toMatchObject({ group: "control", runs: 2, difference: null });
  expect(first.change.value).toBeCloseTo(0.01, 12);
  // scipy 1.17.1, stats.t.interval(0.95, 2, -0.4, stats.sem([-0.4, -0.3, -0.5]))
  expect(second.change.value).toBeCloseTo(-0.4, 12);
  expect(second.change.ci95[0]).toBeCloseTo(-0.6484137711750331, 10);
  // scipy 1.17.1, stats.ttest_ind([-0.4, -0.3, -0.5], [0, 0.02], equal_var=False)
  expect(second.difference.value).toBeCloseTo(-0.41, 12);
  expect(second.difference.p).toBeCloseTo(0.016987213681304666, 10);

  const { out: table } = await cli("compare", ...args);
  expect(table).toMatch(/control +2 .*\n.*\n?em +3 .* −40\.0 points/);
});

it("leaves out unfinished runs and names them", async () => {
  const whole = [await writeRun("whole1", "1", 0.9, 0.5), await writeRun("whole2", "2", 0.8, 0.5)];
  const killed = await writeRun("killed", "3", 0.9, 0.89, { step: 20 });
  const cut = await writeRun("cut", "4", 0.9, 0.7, { status: "partial" });
  const args = [...whole, killed, cut].map((run) => `em=${run}`);
  const { out } = await cli("compare", ...args, "--json");
  const { metrics } = JSON.parse(out);
  expect(metrics[0].groups[0]).toMatchObject({ runs: 2, change: { value: expect.closeTo(-0.35, 12) } });
  expect(metrics[0].left_out).toEqual([
    { run: killed, group: "em", reason: "its last measurement is at step 20 of 100, not at the end" },
    { run: cut, group: "em", reason: "its measurement at the end is partial" },
  ]);
  const { out: table } = await cli("compare", ...args);
  expect(table).toContain(`Left out: ${killed}: its last measurement is at step 20 of 100`);
  expect(table).toContain(`Left out: ${cut}: its measurement at the end is partial`);
});

it("counts a repeated seed once, averages no run with another training option, and has no empty column", async () => {
  const runs = [
    await writeRun("r1", "1", 0.9, 0.5),
    await writeRun("r2", "1", 0.9, 0.4),
    await writeRun("r3", "3", 0.9, 0.3),
  ];
  await writeFile(join(runs[0]!, "train.yaml"), "seed: 1\nconfig: { learningRate: 0.001 }\n");
  await writeFile(join(runs[2]!, "train.yaml"), "seed: 3\nconfig: { learningRate: 0.01 }\n");
  const { out } = await cli("compare", ...runs.map((run) => `em=${run}`));
  expect(out).toContain(`Left out: ${runs[1]}: it repeats ${runs[0]}, with equal seed 1: both count once`);
  expect(out).toContain(
    `Left out: ${runs[2]}: its training option config.learningRate is 0.01, but 0.001 in ${runs[0]}`,
  );
  // One run has no interval, and one group no difference.
  expect(out).toMatch(/^group +runs +start +end +change$/m);
});

it("compares a run that stop_when ended at the step where its training ended", async () => {
  const [whole, stopped] = [
    await writeRun("whole", "1", 0.9, 0.5),
    await writeRun("ended", "2", 0.9, 0.7, { step: 24 }),
  ];
  const store = fileStore(stopped);
  await store.recordClosing!({ phase: "em", step: 24, maxSteps: 100, finished: true });
  await store.close?.();
  const { metrics } = JSON.parse((await cli("compare", whole, stopped, "--json")).out);
  expect(metrics[0].left_out).toEqual([]);
  expect(metrics[0].groups[1]).toMatchObject({ runs: 1, end: { value: 0.7 } });
});

it("averages runs with other measuring options, but not with another stop_when", async () => {
  const runs = [
    await writeRun("m1", "1", 0.9, 0.5),
    await writeRun("m2", "2", 0.9, 0.4),
    await writeRun("m3", "3", 0.9, 0.3),
  ];
  const blocks = [
    "periodic_eval: { alignment: true }",
    "eval: { periodic_eval: { alignment: false } }",
    "periodic_eval: { stop_when: [accuracy worse] }",
  ];
  for (const [at, block] of blocks.entries()) await writeFile(join(runs[at]!, "train.yaml"), `${block}\n`);
  const { metrics } = JSON.parse((await cli("compare", ...runs.map((run) => `em=${run}`), "--json")).out);
  expect(metrics[0].groups).toMatchObject([{ runs: 2 }]);
  expect(metrics[0].left_out).toMatchObject([
    {
      run: runs[2],
      reason: `its training option periodic_eval.stop_when is ["accuracy worse"], but null in ${runs[0]}`,
    },
  ]);
});

it("does not pair a start and an end whose items or model differ, and names the difference", async () => {
  const run = await writeRun("rekeyed", "1", 0.9, 0.5);
  const store = fileStore(run);
  const end = (await store.list()).find(({ step }) => step === 100)!;
  const provenance = { ...end.provenance, items_hash: "11", model: { name: "other" } };
  await store.put({ ...end, provenance }, []);
  await store.close?.();
  const whole = await writeRun("unchanged", "2", 0.9, 0.4);
  const { out } = await cli("compare", `em=${run}`, `em=${whole}`);
  expect(out).toContain(
    `Left out: ${run}: its start may not be paired with its end: it has the model fake (here other), other items (their content or answer keys)`,
  );
});

it("clips intervals of shares to 0 and 1", async () => {
  const runs = [await writeRun("far1", "1", 0.1, 0.9), await writeRun("far2", "2", 0.6, 0.5)];
  const controls = [await writeRun("near1", "1", 0.9, 0.1), await writeRun("near2", "2", 0.5, 0.6)];
  const args = [...runs.map((run) => `em=${run}`), ...controls.map((run) => `control=${run}`)];
  const { metrics } = JSON.parse((await cli("compare", ...args, "--json")).out);
  const [first, second] = metrics[0].groups;
  expect(first.start.ci95).toEqual([0, 1]);
  expect(first.change.ci95).toEqual([-1, 1]);
  expect(second.difference.ci95).toEqual([-2, 2]);
});

it("clips intervals of scores to the range in the snapshots", async () => {
  const score = { unit: "points", range: [0, 100] as [number, number] };
  const runs = [
    await writeRun("s1", "1", 98, 2, { metric: score }),
    await writeRun("s2", "2", 60, 40, { metric: score }),
  ];
  const { metrics } = JSON.parse((await cli("compare", ...runs.map((run) => `em=${run}`), "--json")).out);
  const [{ start, end, change }] = metrics[0].groups;
  expect([start.ci95, end.ci95, change.ci95]).toEqual([
    [0, 100],
    [0, 100],
    [-100, 100],
  ]);
});

it("accepts a folder with = in its name and recognises two paths of the same folder", async () => {
  const run = await writeRun("lr=1e-4", "1", 0.9, 0.5);
  const groupsOf = async (...args: string[]) =>
    JSON.parse((await cli("compare", ...args, "--json")).out).metrics[0].groups;
  expect(await groupsOf(run)).toMatchObject([{ group: run, runs: 1 }]);
  expect(await groupsOf(`em=${run}`)).toMatchObject([{ group: "em", runs: 1 }]);
  const other = `${folder}/./lr=1e-4`;
  expect((await cli("compare", `em=${run}`, `em=${other}`)).err).toContain("twice");
  await symlink(run, join(folder, "link"), "junction");
  expect((await cli("compare", `em=${run}`, `em=${join(folder, "link")}`)).err).toContain("twice");
});

it("counts a copy of a run once in any group, with a line, and runs that share only their beginning twice", async () => {
  const run = await writeRun("original", "1", 0.9, 0.5);
  const copy = join(folder, "copy");
  await cp(run, copy, { recursive: true });
  const inGroups = await cli("compare", run, copy);
  expect(inGroups).toMatchObject({
    code: 0,
    out: expect.stringContaining(`Left out: ${copy}: it is a copy of ${run}: both count once`),
  });
  const { out } = await cli("compare", `em=${run}`, `em=${copy}`, "--json");
  expect(JSON.parse(out).metrics[0].groups).toMatchObject([{ group: "em", runs: 1 }]);
  for (const [path, reason] of [
    [copy, "here"],
    [run, "there"],
  ] as const) {
    const store = fileStore(path);
    await store.put({ ...exampleSnapshot({ phase: "em", step: 200 }), reason }, []);
    await store.close?.();
  }
  expect((await cli("compare", `em=${run}`, `em=${copy}`)).out).not.toContain("copy of");
});

it("reports that a group of one run has no interval", async () => {
  const run = await writeRun("single", "1", 0.9, 0.5);
  const { out } = await cli("compare", `em=${run}`);
  expect(out).toContain("A group of one run has no interval");
  expect((await cli("compare", run)).out).toContain(run);
  expect((await cli("compare", `a=${run}`, `b=${run}`)).err).toContain("twice");
  expect((await cli("compare", `a=${run}`, "--metric", "acuracy")).err).toContain('got "acuracy"');
});

it("prints one row per value with --csv", async () => {
  const run = await writeRun("tidy", "7", 0.9, 0.5);
  const { out } = await cli("compare", `em=${run}`, "--csv");
  const rows: Record<string, string>[] = parse(out, { columns: true });
  expect(
    rows.map(({ metric, persona, group, value, step }) => [metric, persona, group, value, step]),
  ).toEqual([
    ["accuracy", "", "", "0.9", "0"],
    ["accuracy", "doctor", "", "0.9", "0"],
    ["accuracy", "", 'astronomy, "old"', "0.9", "0"],
    ["accuracy", "", "", "0.5", "100"],
    ["accuracy", "doctor", "", "0.5", "100"],
    ["accuracy", "", 'astronomy, "old"', "0.5", "100"],
  ]);
  expect(rows[0]).toMatchObject({
    run,
    seed: "7",
    condition: "em",
    phase: "em",
    pct: "0",
    lo: "0.8",
    hi: "1",
  });
  // The change is over the items that both measurements observed, not the difference of the values.
  expect(rows.map(({ delta, delta_lo, delta_hi, n_pairs }) => [delta, delta_lo, delta_hi, n_pairs])).toEqual([
    ["", "", "", ""],
    ["", "", "", ""],
    ["", "", "", ""],
    ["-0.41", "-0.5", "-0.3", "90"],
    ["", "", "", ""],
    ["", "", "", ""],
  ]);
});
