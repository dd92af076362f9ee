import { expect, it } from "vitest";
import { changesOf, obstacleTo } from "./changes.ts";
import { ratioOf, type Comparison, type MeasuredPart } from "./results.ts";

const row = (parts: Partial<Comparison>): Comparison => ({
  name: "a step",
  unit: "seconds",
  ratio: "speed",
  peer: "PyTorch",
  ours: [1, 2, 4],
  peers: [4, 4, 4],
  ...parts,
});

it("divides the medians, and gives the range of the repeats' ratios", () => {
  // Medians 2 and 4; repeats 4/1, 4/2, 4/4.
  expect(ratioOf(row({}))).toEqual({ median: 2, least: 1, greatest: 4 });
  expect(ratioOf(row({ ratio: "share" }))).toEqual({ median: 0.5, least: 0.25, greatest: 1 });
});

it("reports a change only where the ranges do not overlap", () => {
  const verdict = (ours: readonly number[], ratio: Comparison["ratio"] = "speed") =>
    changesOf([row({ ratio })], [row({ ours, ratio })])[0]!.verdict;
  expect(verdict([0.5, 0.6, 0.9])).toBe("better");
  expect(verdict([0.5, 0.6, 1.1])).toBeNull();
  expect(verdict([4.1, 5, 6])).toBe("worse");
  expect(verdict([4.1, 5, 6], "share")).toBe("worse");
  expect(verdict([0.5, 0.6, 0.9], "share")).toBe("better");
});

it("ignores a change of less than three percent", () => {
  const steady = (ours: number) => [row({ ours: [ours], peers: [1] })];
  expect(changesOf(steady(1), steady(1.02))[0]!.verdict).toBeNull();
  expect(changesOf(steady(1), steady(1.05))[0]!.verdict).toBe("worse");
});

it("leaves out work and peers that the last report lacks", () => {
  expect(changesOf([row({})], [row({ name: "another step" }), row({ peer: "JAX" })])).toEqual([]);
});

const repeated = (parts: Partial<Comparison>) =>
  row({ ours: [1, 2, 2, 2, 4], peers: [4, 4, 4, 4, 4], ...parts });

const report = (parts: Partial<MeasuredPart>): MeasuredPart => ({
  measured: "2026-11-24",
  load: 0.5,
  cores: 2,
  machine: "2 cores",
  comparisons: [repeated({})],
  ...parts,
});

it("compares reports of one idle machine", () => {
  expect(obstacleTo(report({}), report({}))).toBeNull();
});

const fourRepeats = { comparisons: [repeated({ ours: [1, 2, 2, 4], peers: [4, 4, 4, 4] })] };

it.each([
  ["of another machine", report({ machine: "8 cores" }), report({})],
  ["with other arguments", report({ extraArgs: ["--tokens", "8"] }), report({})],
  ["after a report of four repeats", report(fourRepeats), report({})],
  ["of four repeats", report({}), report(fourRepeats)],
  ["of four repeats of the peer", report({}), report({ comparisons: [repeated({ peers: [4, 4, 4, 4] })] })],
  ["after a report of a busy machine", report({ load: 4 }), report({})],
  ["of a busy machine", report({}), report({ load: 4 })],
])("gives a reason not to compare a report %s", (_, before, after) => {
  expect(obstacleTo(before, after)).toEqual(expect.any(String));
});

it("names the arguments of the last report if they differ", () => {
  const obstacle = (before: readonly string[], after: readonly string[]) =>
    obstacleTo(report({ extraArgs: before }), report({ extraArgs: after }));
  expect(obstacle(["--tokens", "8"], [])).toBe("the last report has other arguments: --tokens 8");
  expect(obstacle([], ["--tokens", "8"])).toBe("the last report has other arguments: none");
  expect(obstacle(["--tokens", "8"], ["--tokens", "8"])).toBeNull();
});

it("calls a machine busy if its load is more than half its cores", () => {
  const obstacle = (load: number, cores: number) => obstacleTo(report({}), report({ load, cores }));
  expect(obstacle(1, 2)).toBeNull();
  expect(obstacle(1.1, 2)).toBe("the machine was busy");
  expect(obstacle(1.1, 8)).toBeNull();
});

it("compares memory on a busy machine", () => {
  const memory = { load: 4, comparisons: [repeated({ unit: "bytes", ratio: "share" })] };
  expect(obstacleTo(report(memory), report(memory))).toBeNull();
});
