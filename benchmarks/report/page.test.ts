import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { pageOf } from "./page.ts";
import { parts, type Part } from "./parts.ts";
import { addedTo, type MeasuredPart, type Report } from "./results.ts";

const part: Part = {
  name: "steps",
  title: "Steps",
  about: "One step.",
  file: "training.ts",
  args: [],
  targets: { "a step": 1.25 },
};

it("writes one row for each comparison, with medians, ranges, ratio and target", () => {
  const comparison = {
    name: "a step",
    unit: "seconds",
    ratio: "speed",
    peer: "PyTorch",
    ours: [1, 2, 4],
    peers: [4, 4, 4],
  } as const;
  const report: Report = {
    steps: [
      {
        measured: "2026-11-24",
        load: 0.5,
        cores: 2,
        machine: "2 cores",
        comparisons: [comparison],
        peaks: { ours: 2 ** 30, peers: { PyTorch: 2 ** 31 } },
        notes: ["Losses agree."],
      },
    ],
  };
  const page = pageOf([part], report);
  expect(page).toContain(
    "| 2 cores, 2026-11-24 | a step | 2.00 s (1.00–4.00) | 4.00 s (4.00–4.00), PyTorch | **2.00 ×** as fast (1.00–4.00) | ≥ 1.25 × |",
  );
  expect(page).toContain("Losses agree.");
  expect(page).toContain("this library 1.00 GiB, PyTorch 2.00 GiB");
  expect(page).toContain("2026-11-24, 3 repeats, 2 cores, load 0.5: `npm run bench report -- --part steps`");
  expect(page).not.toContain("Not measured yet");
});

it("gives shares of memory in GiB, and their targets as upper limits", () => {
  const [ours, peers] = [
    [2 ** 30, 2 ** 30],
    [2 ** 31, 2 ** 31],
  ];
  const comparison = { name: "a step", unit: "bytes", ratio: "share", peer: "PyTorch", ours, peers } as const;
  const report: Report = {
    steps: [{ measured: "2026-11-24", load: 0, cores: 2, machine: "2 cores", comparisons: [comparison] }],
  };
  expect(pageOf([part], report)).toContain(
    "| a step | 1.00 GiB (1.00–1.00) | 2.00 GiB (2.00–2.00), PyTorch | **0.50 ×** the memory (0.50–0.50) | ≤ 1.25 × |",
  );
});

it("gives no range for one repeat, and the further arguments in the command", () => {
  const of = { name: "a step", unit: "seconds", ratio: "speed", peer: "PyTorch" } as const;
  const comparisons = [{ ...of, ours: [1], peers: [2] }];
  const extraArgs = ["--rounds", "1"];
  const page = pageOf([part], {
    steps: [{ measured: "2026-11-24", load: 0.5, cores: 2, machine: "2 cores", extraArgs, comparisons }],
  });
  expect(page).toContain("| a step | 1.00 s | 2.00 s, PyTorch | **2.00 ×** as fast | ≥ 1.25 × |");
  expect(page).toContain("2026-11-24, 1 repeat, 2 cores");
  expect(page).toContain("`npm run bench report -- --part steps -- --rounds 1`");
});

it("calls times of a busy machine rough", () => {
  const of = { name: "a step", ratio: "speed", peer: "PyTorch", ours: [1], peers: [2] } as const;
  const pageWith = (unit: "seconds" | "bytes") =>
    pageOf([part], {
      steps: [
        {
          measured: "2026-11-24",
          load: 4,
          cores: 2,
          machine: "2 cores",
          comparisons: [{ ...of, unit }],
        },
      ],
    });
  expect(pageWith("seconds")).toContain("busy with other work");
  expect(pageWith("bytes")).not.toContain("busy with other work");
});

it("keeps the rows of other processors, and replaces those of the same", () => {
  const of = { name: "a step", unit: "seconds", ratio: "speed", peer: "PyTorch", peers: [6] } as const;
  const measuredOn = (processor: string, node: string, seconds: number): MeasuredPart => ({
    measured: "2026-11-24",
    load: 0,
    cores: 2,
    machine: `2 cores of ${processor}, Node ${node}, wasm`,
    comparisons: [{ ...of, ours: [seconds] }],
  });
  const all = [measuredOn("A", "20", 1), measuredOn("B", "20", 2), measuredOn("A", "22", 3)];
  const page = pageOf(
    [part],
    all.reduce((report, measured) => addedTo(report, "steps", measured), {} as Report),
  );
  const row = (processor: string, seconds: string, ratio: string) =>
    `| 2 cores of ${processor}, 2026-11-24 | a step | ${seconds} s | 6.00 s, PyTorch | **${ratio} ×** as fast | ≥ 1.25 × |`;
  expect(page).toContain(`${row("A", "3.00", "2.00")}\n${row("B", "2.00", "3.00")}\n`);
  expect(page).toContain("2 cores of A, Node 22");
  expect(page).not.toContain("2 cores of A, Node 20");
});

it("has targets for one of several peers", () => {
  const of = { name: "a step", unit: "seconds", ratio: "speed", ours: [1], peers: [2] } as const;
  const comparisons = ["PyTorch", "JAX"].map((peer) => ({ ...of, peer }));
  const targets = { "a step, JAX": 1 };
  const page = pageOf([{ ...part, targets }], {
    steps: [{ measured: "2026-11-24", load: 0, cores: 2, machine: "2 cores", comparisons }],
  });
  expect(page).toContain("2.00 s, PyTorch | **2.00 ×** as fast | – |");
  expect(page).toContain("2.00 s, JAX | **2.00 ×** as fast | ≥ 1 × |");
});

it("lists the parts that were not measured, with the commands that measure them", () => {
  expect(pageOf([part], {})).toContain("- Steps: `npm run bench report -- --part steps`");
  expect(pageOf([{ ...part, whyMissing: "no steps" }], {})).toContain("- Steps (no steps): `npm run");
});

it("wrote docs/performance.md from docs/performance.json", async () => {
  const report = JSON.parse(await readFile("docs/performance.json", "utf8")) as Report;
  expect(await readFile("docs/performance.md", "utf8")).toBe(pageOf(parts, report));
});

it("has a different name for each part", () => {
  expect(new Set(parts.map(({ name }) => name)).size).toBe(parts.length);
});
