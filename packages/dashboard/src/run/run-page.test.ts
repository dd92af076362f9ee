import type { PhaseRecord } from "@periodic-eval/contracts";
import type { Snapshot } from "@periodic-eval/core";
import { fileStore, readRun } from "@periodic-eval/store";
import { parseHTML } from "linkedom";
import { readFile } from "node:fs/promises";
import { beforeEach, describe, expect, it } from "vitest";
import { drawnPage } from "../client/drawn-page.test-data.ts";
import { snapshotTable } from "./measurement-table.ts";
import { overview, runHeader } from "./overview.ts";
import { phaseTables } from "./phase-table.ts";
import { phaseData } from "./phase-summary.ts";
import { lossAndHarms } from "./run-data.ts";
import { renderPage, writePage } from "./run-page.ts";
import { writeSampleRun } from "./sample-run.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let runDir = "";
beforeEach(() => void (runDir = temporaryFolder()));

const page = async () => drawnPage(renderPage(await readRun(runDir)));
const text = (element: Element | null) => element?.textContent?.replace(/\s+/g, " ").trim();
const cells = (row: Element) => [...row.children].map(text).join(" | ");

describe("a run of two phases", () => {
  beforeEach(() => writeSampleRun(runDir));

  it("draws every measurement of the primary metric, with its value in a tooltip", async () => {
    const titles = [...(await page()).querySelectorAll(".wide svg title")].map((title) => title.textContent);
    expect(titles).toHaveLength(12);
    expect(titles[0]).toBe("coupling step 0: 93.0 % [88.0, 98.0], n = 100");
    // 63 − 90 of 100 questions = −27 points; e^(−40 × 0.27) = 2.0e−5.
    expect(titles[11]).toContain(
      "against em step 0: −27.0 points [−34.0, −21.0] over 100 paired items, p < 0.0001, worse",
    );
  });

  it("places a measurement by its run step and value", async () => {
    const dots = [...(await page()).querySelectorAll('.wide svg circle[r="4.5"]')];
    const at = (index: number, axis: "cx" | "cy") => Number(dots[index]!.getAttribute(axis));
    expect(dots).toHaveLength(12);
    // The end of coupling and the start of em are the same weights at the same run step 60 of 120.
    expect(at(5, "cx")).toBe(at(6, "cx"));
    expect(at(5, "cx") - at(0, "cx")).toBeCloseTo(at(11, "cx") - at(6, "cx"));
    // 93 → 90 is three points down, 90 → 63 twenty-seven: nine times as far on the same axis.
    expect((at(11, "cy") - at(6, "cy")) / (at(5, "cy") - at(0, "cy"))).toBeCloseTo(9);
  });

  it("draws bars in all phases of a small chart if a step of one phase has no interval", async () => {
    const bands = async (isBounded: boolean) => {
      const folder = temporaryFolder();
      await writeSampleRun(folder, (snapshot) => {
        const { gold_prob: gold, ...others } = snapshot.metrics;
        const isLast = snapshot.phase === "em" && snapshot.step === 60;
        const gold_prob = isLast && !isBounded ? { ...gold!, ci95: null } : gold!;
        return { ...snapshot, metrics: { ...others, gold_prob } };
      });
      const document = drawnPage(renderPage(await readRun(folder)));
      const chart = document.querySelector('[data-curve="capability/gold_prob"] svg')!;
      return chart.querySelectorAll("[fill-opacity='0.15']").length;
    };
    expect([await bands(true), await bands(false)]).toEqual([2, 0]);
  });

  it("leaves out the chart of an upper bound that equals the primary metric in every measurement, and names it", async () => {
    const upper = async (added: number) => {
      const folder = temporaryFolder();
      await writeSampleRun(folder, (snapshot) => {
        const { accuracy } = snapshot.metrics;
        const accuracy_upper = { ...accuracy!, value: accuracy!.value! + (snapshot.step === 60 ? added : 0) };
        return { ...snapshot, metrics: { ...snapshot.metrics, accuracy_upper } };
      });
      const { document } = parseHTML(renderPage(await readRun(folder)));
      const charts = [...document.querySelectorAll("[data-curve]")].map((svg) =>
        svg.getAttribute("data-curve"),
      );
      return [charts.includes("capability/accuracy_upper"), text(document.querySelector("#curves-1"))!];
    };
    const sentence = "The same as accuracy in every measurement: accuracy upper.";
    expect(await upper(0)).toEqual([false, expect.stringContaining(sentence)]);
    expect(await upper(0.01)).toEqual([true, expect.not.stringContaining(sentence)]);
  });

  it("lists start, end, change and verdict of each phase", async () => {
    const rows = [...(await page()).querySelectorAll("tr.primary")].map(cells);
    expect(rows).toEqual([
      "capability: accuracy | 93.0 % | 90.0 % | −3.0 points | [−10.0, 3.0] | 0.30 | ○ no evidence at 1.0 % | ±11.7 points",
      "capability: accuracy | 90.0 % | 63.0 % | −27.0 points | [−34.0, −21.0] | < 0.0001 | ▼ worse at 1.0 % | ±11.7 points",
    ]);
  });

  it("states that no ceiling was set, only for phases with the governor off", async () => {
    const overheads = async () => {
      const document = await page();
      const fact = [...document.querySelectorAll(".facts > div")].find(
        (entry) => text(entry.querySelector("dt")) === "Overhead",
      );
      return [text(fact!.querySelector("dd")), ...[...document.querySelectorAll("caption")].map(text)];
    };
    const table = "60 steps, measuring took 5.07 s, overhead 18.4 %";
    expect(await overheads()).toEqual([
      "5.07 s, overhead 18.4 %, no ceiling set (coupling) 5.07 s, overhead 18.4 %, no ceiling set (em)",
      `coupling ${table}, no ceiling set`,
      `em ${table}, no ceiling set`,
    ]);
    await writeSampleRun(runDir, (snapshot) => {
      if (snapshot.phase === "em") return snapshot;
      // This measurement failed before the governor decided.
      if (snapshot.step === 12) return { ...snapshot, status: "failed", reason: "no file" };
      return { ...snapshot, timing: { ...snapshot.timing, governor: "whole: 9 s left" } };
    });
    expect(await overheads()).toEqual([
      "5.07 s, overhead 18.4 % (coupling) 5.07 s, overhead 18.4 %, no ceiling set (em)",
      `coupling ${table}`,
      `em ${table}, no ceiling set`,
    ]);
    await writeSampleRun(runDir, (snapshot) => {
      const budget = { limit: "grace_seconds", grace_seconds: 60, reduced: false } as const;
      return { ...snapshot, timing: { ...snapshot.timing, governor: "whole: 9 s left", budget } };
    });
    expect((await overheads()).slice(1)).toEqual([
      "coupling 60 steps, measuring took 5.07 s, within the 60 s that the budget always allows",
      "em 60 steps, measuring took 5.07 s, within the 60 s that the budget always allows",
    ]);
  });

  it("lists the evidence of every guard", async () => {
    const { document } = parseHTML(renderPage(await readRun(runDir)));
    const rows = [...document.querySelectorAll("#receipts > .scroll tbody tr")].map(cells);
    const unchanged = "12 of 12 | 0 | 0";
    expect(rows).toEqual([
      `math-random | ${unchanged} | training's own = unchanged no draws`,
      `tensors advisory | ${unchanged} | 118 tensors = unchanged`,
      `variables | ${unchanged} | 87 variables = unchanged`,
      `mode | ${unchanged} | decoder: training, dropout 0.1 = unchanged`,
      `weights | ${unchanged} | pe128:a51012345678…3456789abc = unchanged`,
      `optimizer | ${unchanged} | pe128:b51012345678…3456789abc slots=58 steps=60 = unchanged`,
      `evaluation-mode | ${unchanged} | entered → restored`,
    ]);
    expect(document.querySelector("#problems")).toBeNull();
  });

  it("contains one script, no link or external source, and a policy that forbids others", async () => {
    const markup = await readFile(await writePage(runDir), "utf8");
    const { document } = parseHTML(markup);
    const policy = document
      .querySelector('meta[http-equiv="Content-Security-Policy"]')
      ?.getAttribute("content");
    expect(policy).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/=]{44}'; script-src 'sha256-[\w+/=]{44}'; img-src data:; base-uri 'none'; form-action 'none'$/,
    );
    const scripts = [...document.querySelectorAll("script")];
    expect(scripts.map((script) => script.getAttribute("type"))).toEqual([
      "application/json",
      "application/json",
      null,
    ]);
    expect(scripts.map(({ attributes }) => attributes.length)).toEqual([2, 2, 0]);
    for (const script of scripts) expect(markup).toContain(script.textContent);
    const withoutScripts = scripts.reduce((rest, script) => rest.replace(script.outerHTML, ""), markup);
    expect(withoutScripts).not.toMatch(/<script/i);
    expect(withoutScripts).not.toMatch(/<link|<img|<iframe|\ssrc=|@import|url\(/i);
    // The only URL is the name of SVG's namespace, which browsers do not fetch.
    expect(markup.replaceAll("http://www.w3.org/2000/svg", "")).not.toMatch(/https?:\/\//);
    expect([...document.querySelectorAll("[href]")].map((a) => a.getAttribute("href")?.[0])).not.toContain(
      "h",
    );
  });
});

it("escapes every string of a snapshot", async () => {
  const hostile = `<script>alert("1")</script><img src=x onerror='x'>&amp;`;
  await writeSampleRun(runDir, (snapshot) => ({
    ...snapshot,
    status: "partial",
    reason: hostile,
    evaluation: hostile,
    evaluation_version: hostile,
    created_at: hostile,
    metrics: { [hostile]: { ...snapshot.metrics["accuracy"]!, unit: hostile } },
    primary_metric: hostile,
    receipt: [{ part: hostile, before: hostile, after: hostile, intact: false, note: hostile }],
    weights: hostile,
    provenance: {
      ...snapshot.provenance,
      seed: hostile,
      tokenizer: hostile,
      created_by: hostile,
      evaluation: { [hostile]: hostile },
      model: { name: hostile },
    },
  }));
  const { document } = parseHTML(renderPage(await readRun(runDir)));
  const scripts = [...document.querySelectorAll("script")].map((script) => script.id);
  expect(scripts).toEqual(["run-data", ""]);
  expect(document.querySelectorAll("img")).toHaveLength(0);
  expect(text(document.querySelector("#problems"))).toContain(hostile);
});

it("lists a failed measurement and one that disturbed training as problems", async () => {
  await writeSampleRun(runDir, (snapshot): Snapshot => {
    if (snapshot.phase === "em" && snapshot.step === 12)
      return Object.assign(snapshot, {
        status: "failed",
        reason: "the judge did not answer",
        metrics: {},
        primary_metric: null,
      } as const);
    if (snapshot.phase === "em" && snapshot.step === 24)
      return { ...snapshot, receipt: [{ part: "weights", before: "a", after: "b", intact: false }] };
    return snapshot;
  });
  const document = await page();
  const problems = [...document.querySelectorAll("#problems tbody tr")].map(cells);
  expect(problems).toEqual([
    "em, capability, step 24 | disturbed | weights",
    "em, capability, step 12 | failed | the judge did not answer",
  ]);
  expect(text(document.querySelector(".sentences li:last-child"))).toBe(
    "! Training undisturbed: no (measuring changed the weights); 10 of 11 measurements proven, 1 disturbed. Receipts",
  );
  // The curve omits a measurement without a value; it does not draw it at 0.
  expect(document.querySelectorAll('.wide svg circle[r="4.5"]')).toHaveLength(11);
});

describe("the headline on training", () => {
  const unmeasured = { metrics: {}, primary_metric: null, receipt: [] };
  const withoutTime = (snapshot: Snapshot) => ({ ...snapshot.timing, measure_seconds: 0 });
  const without = (snapshot: Snapshot, ...parts: readonly string[]) =>
    snapshot.receipt.filter(({ part }) => !parts.includes(part));
  const skipped = (snapshot: Snapshot): Snapshot => ({
    ...snapshot,
    ...unmeasured,
    timing: withoutTime(snapshot),
    status: "skipped",
    reason: "no time",
  });
  const isLater = ({ phase, step }: Snapshot) => phase === "em" && step > 0;
  const headline = async (change: (snapshot: Snapshot) => Snapshot) => {
    await writeSampleRun(runDir, change);
    const run = await readRun(runDir);
    // Leaves out the charts, which take longest.
    const sections = [runHeader(run, "run", null), overview(run), snapshotTable(run), phaseTables(run)];
    const { document } = parseHTML(`<main>${sections.map(({ markup }) => markup).join("")}</main>`);
    const fact = [...document.querySelectorAll(".facts > div")].find(
      (entry) => text(entry.querySelector("dt")) === "Overhead",
    );
    const answers = [...document.querySelectorAll("#snapshots tbody tr")].map((row) =>
      text(row.children[11]!),
    );
    return {
      sentence: text(document.querySelector(".sentences li:last-child")),
      overhead: text(fact!.querySelector("dd")),
      answers: [...new Set(answers)],
      captions: [...document.querySelectorAll("caption")].map(text),
    };
  };

  it("says yes if the guards passed in every measurement that took place", async () => {
    expect(await headline((snapshot) => snapshot)).toMatchObject({
      sentence: "✓ Training undisturbed: yes; 12 of 12 measurements proven. Receipts",
      answers: ["yes"],
    });
  });

  it("does not count skipped and failed measurements against it", async () => {
    const change = (snapshot: Snapshot): Snapshot =>
      isLater(snapshot)
        ? snapshot.step === 12
          ? { ...skipped(snapshot), status: "failed", reason: "no file" }
          : skipped(snapshot)
        : snapshot;
    expect(await headline(change)).toMatchObject({
      sentence: "✓ Training undisturbed: yes; 7 of 7 measurements proven. Receipts",
      answers: ["yes", "–"],
    });
  });

  it("says no, and what changed", async () => {
    const evidence = { part: "weights", before: "a", after: "b", intact: false };
    const change = (snapshot: Snapshot): Snapshot =>
      isLater(snapshot) ? { ...snapshot, receipt: [...without(snapshot, "weights"), evidence] } : snapshot;
    expect(await headline(change)).toMatchObject({
      sentence:
        "! Training undisturbed: no (measuring changed the weights); 7 of 12 measurements proven, 5 disturbed. Receipts",
      answers: ["yes", "no: weights"],
    });
  });

  it("says not proven, and which guards are missing", async () => {
    const change = (snapshot: Snapshot): Snapshot =>
      isLater(snapshot) ? { ...snapshot, receipt: without(snapshot, "optimizer", "mode") } : snapshot;
    expect(await headline(change)).toMatchObject({
      sentence:
        "· Training undisturbed: not proven (no guard observed the optimizer, the mode); 7 of 12 measurements proven. Receipts",
      overhead:
        "5.07 s, overhead 18.4 %, no ceiling set (coupling) 5.07 s, overhead 18.4 %, no ceiling set (em)",
      answers: ["yes", "not proven"],
    });
  });

  it("says not applicable, for overhead too, if the weights were read from a checkpoint", async () => {
    const change = (snapshot: Snapshot): Snapshot => {
      const note = "the weights were read from the checkpoint step_4 of another process";
      const evidence = { part: "checkpoint", before: null, after: null, intact: null, note };
      return { ...snapshot, receipt: [snapshot.receipt[0]!, evidence] };
    };
    expect(await headline(change)).toMatchObject({
      sentence: "· Training undisturbed: not applicable (the weights were read from a checkpoint). Receipts",
      overhead: "5.07 s, overhead not applicable (coupling) 5.07 s, overhead not applicable (em)",
      answers: ["not applicable"],
      captions: ["coupling", "em"].map(
        (phase) => `${phase} 60 steps, measuring took 5.07 s, overhead not applicable`,
      ),
    });
  });

  it("says not applicable for a model behind a server", async () => {
    const change = (snapshot: Snapshot): Snapshot => ({
      ...snapshot,
      receipt: [snapshot.receipt[0]!],
      served: true,
    });
    expect((await headline(change)).sentence).toContain(
      "not applicable (the model was measured on a server)",
    );
  });

  it("is not proven, with the reason, if all measurements were skipped or failed", async () => {
    expect(await headline(skipped)).toMatchObject({
      sentence:
        "· Training undisturbed: not proven (no measurement took place: all were skipped or failed). Receipts",
      answers: ["–"],
    });
  });
});

it("shows a dash for a measurement without a value and for its change", async () => {
  await writeSampleRun(runDir, (snapshot): Snapshot => {
    const unpaired = { paired: { baseline: null, previous: null } };
    const unmeasured = { ...unpaired, metrics: {}, primary_metric: null };
    if (snapshot.phase === "em" && snapshot.step === 60)
      return { ...snapshot, ...unmeasured, status: "failed", reason: "out of memory" };
    if (snapshot.phase === "coupling" && snapshot.step === 0)
      return { ...snapshot, ...unmeasured, status: "skipped", reason: "no file" };
    return snapshot.phase === "coupling" ? { ...snapshot, ...unpaired } : snapshot;
  });
  const document = await page();
  expect([...document.querySelectorAll("tr.primary")].map(cells)).toEqual([
    "capability: accuracy | – (skipped) | 90.0 % | – | – | – | – | –",
    "capability: accuracy | 90.0 % | – (failed) | – | – | – | – | –",
  ]);
  expect(text(document.querySelectorAll(".card .figure")[1]!)).toBe("90.0 % → – (failed)");
});

it("reports a tensor leak of a hook with the hook's name, as an advisory", async () => {
  const note = 'by onStepEnd of callback "probe" at step 30';
  const leak = {
    part: "tensors",
    before: "118 tensors",
    after: "119 tensors",
    intact: false,
    advisory: true,
    note,
  };
  await writeSampleRun(runDir, (snapshot) =>
    snapshot.phase === "em" && snapshot.step === 60
      ? { ...snapshot, receipt: [...snapshot.receipt, leak] }
      : snapshot,
  );
  const document = await page();
  const tensors = [...document.querySelectorAll("#receipts > .scroll tbody tr")].map(cells)[1];
  expect(tensors).toBe(`tensors advisory | 12 of 13 | 1 | 0 | 118 tensors → 119 tensors ${note}`);
  expect([...document.querySelectorAll("#problems tbody tr")].map(cells)).toEqual([
    "em, capability, step 60 | advisory | tensors",
  ]);
  expect(text(document.querySelector(".sentences li:last-child"))).toContain("undisturbed: yes;");
});

it("shows the items hash of the provenance", async () => {
  await writeSampleRun(runDir, (snapshot) => ({
    ...snapshot,
    provenance: { ...snapshot.provenance, items_hash: `pe128:${"9".repeat(32)}` },
  }));
  const items = [...(await page()).querySelectorAll("details dd")].map(text)[1];
  expect(items).toBe(`100, pe128:${"9".repeat(32)}`);
});

it("shows model and provenance when the first measurement was skipped before preparation", async () => {
  await writeSampleRun(runDir, (snapshot) => {
    if (snapshot.run_step > 0) return snapshot;
    const { seed, created_by } = snapshot.provenance;
    const unknown = {
      hash: null,
      items_hash: null,
      items: null,
      evaluation: null,
      model: null,
      tokenizer: null,
    };
    const provenance = { ...unknown, seed, created_by };
    return { ...snapshot, status: "skipped", metrics: {}, primary_metric: null, provenance };
  });
  const document = await page();
  expect(text(document.querySelector(".facts"))).toContain("Model micro-world");
  expect([...document.querySelectorAll("summary .code")].map(text)).toEqual(["pe128:4c1f4c"]);
});

it("shows the facts below the first charts, with the last folder of a model's path and what was skipped", async () => {
  const path = "/usr/lib/python3/site-packages/periodic_eval/village/model/";
  await writeSampleRun(runDir, (snapshot): Snapshot => {
    const provenance = { ...snapshot.provenance, model: { name: path } };
    if (snapshot.phase === "coupling" || snapshot.step < 24) return { ...snapshot, provenance };
    const status = snapshot.step === 24 ? "failed" : "skipped";
    return { ...snapshot, status, reason: "no time", metrics: {}, primary_metric: null };
  });
  const document = await page();
  const order = [
    ...document.querySelectorAll("header, #curves-1 figure, #overview .cards, #overview .facts, #phases"),
  ];
  const names = order.map((element) => element.id || element.className || element.tagName);
  expect([...new Set(names)]).toEqual(["HEADER", "panel", "cards", "facts", "phases"]);
  const facts = text(document.querySelector(".facts"));
  expect(facts).toMatch(/Model model Engine/);
  expect(facts).toContain("Measurements 8 measured, 3 skipped, 1 failed Overhead 5.07 s,");
  expect(document.querySelector(".facts [title]:not(button)")!.getAttribute("title")).toBe(path);
});

it("lists what the trainer logged once in a phase, because its chart would be a dot", async () => {
  await writeSampleRun(runDir);
  const run = await readRun(runDir);
  const once = { train_runtime: 94.1, total_flos: 1.56e12, loss: 3 };
  const point = (step: number, metrics: Readonly<Record<string, number>>) => ({
    step,
    runStep: step,
    metrics,
  });
  const training = [point(30, { loss: 4 }), point(60, once)];
  const section = async (phases: typeof run.phases) => {
    const { document } = parseHTML(renderPage({ ...run, phases }));
    const charts = [...document.querySelectorAll("#training .multiples figure")];
    return [charts.map(text), text(document.querySelector("#training > .key:last-child"))];
  };
  const [coupling, em] = run.phases as [PhaseRecord, PhaseRecord];
  const runtime = "Total flos 1.56e12 · Train runtime 94.1";
  expect(await section([{ ...coupling, training }, em])).toEqual([["Training loss nats"], runtime]);
  expect(
    await section([
      { ...coupling, training: training.slice(1) },
      { ...em, training: [point(60, { ...once, loss: 2 })] },
    ]),
  ).toEqual([[], "Training loss 3 nats, 2 nats · Total flos 1.56e12 · Train runtime 94.1"]);
});

it("states whether the writing process is alive, gone, or cannot be seen from here", async () => {
  await writeSampleRun(runDir);
  const run = await readRun(runDir);
  const note = (isAlive: boolean | null, host = "north") =>
    text(
      parseHTML(
        renderPage({
          ...run,
          writer: { pid: 7, host, started_at: "", isAlive } as typeof run.writer,
        }),
      ).document.querySelector(".notice"),
    );
  expect(note(true)).toMatch(/^Process 7 on north is writing this run/);
  expect(note(true, "browser")).toMatch(/^A tab of this browser is writing this run/);
  expect(note(false)).toMatch(/^Interrupted: process 7 on north was writing this run and has stopped\./);
  expect(note(null)).toBe(
    "Locked by process 7 on north. That process cannot be seen from here, and no renewal of its lock has been seen yet. This was the state when the page was generated.",
  );
});

it.each([
  // `baseline: "run_start"` compares em with coupling's step 0.
  [{ phase: "coupling" }, "coupling step 0"],
  [{ id: "capability.adapter_off" }, "em step 0 of capability.adapter_off"],
  [{ run: "./runs/1" }, "em step 0 of the run ./runs/1"],
])("names the baseline of a change if it is not the phase's start: %j", async (other, place) => {
  await writeSampleRun(runDir, (snapshot) => {
    const baseline = snapshot.paired.baseline;
    if (snapshot.phase !== "em" || baseline === null) return snapshot;
    const moved = Object.entries(baseline).map(([name, paired]) => [name, { ...paired, ...other }]);
    return { ...snapshot, paired: { ...snapshot.paired, baseline: Object.fromEntries(moved) } };
  });
  const rows = [...(await page()).querySelectorAll("tr.primary")].map(cells);
  expect(rows[0]).toContain("−3.0 points");
  expect(rows[0]).not.toContain("against");
  expect(rows[1]).toMatch(/^capability: accuracy \| 90.0 % \| 63.0 % \| −27.0 points/);
  expect(rows[1]).toContain(`against ${place}`);
});

it("shows the number of paired items of a change that differs from end minus start", async () => {
  await writeSampleRun(runDir, (snapshot) => {
    const { baseline } = snapshot.paired;
    if (snapshot.phase !== "em" || baseline === null) return snapshot;
    const accuracy = { ...baseline["accuracy"]!, n_pairs: 96, delta: baseline["accuracy"]!.delta! - 0.003 };
    return { ...snapshot, paired: { ...snapshot.paired, baseline: { ...baseline, accuracy } } };
  });
  const document = await page();
  const [coupling, em] = [...document.querySelectorAll("tr.primary")].map(cells);
  expect(coupling).toContain("| −3.0 points | [");
  expect(em).toContain("| 90.0 % | 63.0 % | −27.3 points over 96 paired items | [−34.0, −21.0] |");
  const details = [...document.querySelectorAll(".card .detail")].map(text);
  expect(details[0]).toMatch(/^−3\.0 points \[/);
  expect(details[1]).toMatch(/^−27\.3 points over 96 paired items \[/);
  const [, ...measurements] = [...document.querySelectorAll("#snapshots tr")].map(cells);
  // Phase, step, percent, measured, value, interval, n, change, paired items.
  expect(measurements[0]).toMatch(/\| 100 \| – \| – \|/);
  expect(measurements[5]).toMatch(/\| 100 \| −3\.0 points \| 100 \|/);
  expect(measurements[11]).toMatch(/\| 100 \| −27\.3 points \| 96 \|/);
});

describe("a run that stop_when ended", () => {
  const stop = {
    condition: "capability worse",
    step: 40,
    reason: "capability worse: <b>",
    id: "capability",
    measuredAt: 36,
    cleanStep: 24,
  };
  const writeStopped = async (changes: Partial<typeof stop> = {}, loss = [4, 1.5, 0.5]) => {
    await writeSampleRun(runDir);
    const store = fileStore(runDir);
    await store.recordClosing?.({
      phase: "em",
      step: 40,
      maxSteps: 60,
      finished: true,
      stop: { ...stop, ...changes },
    });
    const points = loss.map((value, at) => ({
      step: 24 * at,
      runStep: 60 + 24 * at,
      metrics: { loss: value },
    }));
    await store.recordTraining?.({ phase: "em", points, replace: true });
    await store.close?.();
  };

  it("says so first, with the last clean step, and the test behind a click", async () => {
    await writeStopped();
    const items = [...(await page()).querySelectorAll(".sentences > li")];
    expect(text(items[0]!)).toBe(
      "■ stop_when ended em at step 40: capability worse. No condition was met up to step 24: a checkpoint at or before it is clean. Testcapability worse: <b>.",
    );
    expect(items).toHaveLength(4);
    expect(phaseData(await readRun(runDir)).map(({ stop: of }) => of)).toEqual([
      null,
      expect.objectContaining({ step: 40, measured_at: 36, clean_step: 24 }),
    ]);
  });

  it("marks both steps in every chart, on the axis of run steps", async () => {
    await writeStopped();
    const document = await page();
    const charts = [...document.querySelectorAll("[data-curve] svg")];
    for (const svg of charts) {
      const words = [...svg.querySelectorAll("text")].filter((one) =>
        /condition met|last clean/.test(text(one)!),
      );
      expect(words.map(text)).toEqual(["condition met", "last clean"]);
      expect(svg.getAttribute("aria-label")).toContain(
        "Condition met: run step 96. Last clean: run step 84.",
      );
    }
    expect(charts.length).toBeGreaterThan(5);
    const line = document.querySelector(".wide [stroke='var(--worse)'] > line")!;
    // 56 and 24 are the margins of a chart that is 1000 wide and has 120 steps.
    expect(Number(line.getAttribute("x1"))).toBeCloseTo(56 + (96 / 120) * (1000 - 56 - 24));
  });

  it("says that no step is known to be clean, and marks none", async () => {
    await writeStopped({ cleanStep: null! });
    const document = await page();
    expect(text(document.querySelector(".sentences > li"))).toContain(
      "No earlier step is known to be clean.",
    );
    expect(text(document.querySelector("[data-curve] svg"))).not.toContain("last clean");
  });

  it("draws the loss and the harms on one scale, with the measured values in the legend", async () => {
    await writeStopped();
    const curve = lossAndHarms(await readRun(runDir))!;
    expect(curve.lines).toEqual(["capability: accuracy", "Training loss"]);
    const of = (part: number) => curve.points.filter((one) => one.part === part).map(({ value }) => value);
    // 93 → 63 of 100 questions are 30 points, the largest change; 94 is better than at the first measurement.
    const harms = [93, 92, 94, 91, 92, 90, 90, 84, 79, 71, 66, 63].map((hits) =>
      Math.max(0, (93 - hits) / 30),
    );
    expect(of(0)).toEqual(harms.map((one) => expect.closeTo(one, 9)));
    expect(of(1)).toEqual([1, expect.closeTo(1 / 3.5), 0]);
    const document = await page();
    expect([...document.querySelectorAll("#training .legend li")].map(text)).toEqual([
      "capability: accuracy 93.0 % → 63.0 %",
      "Training loss 4 nats → 0.5 nats",
    ]);
    expect(document.querySelectorAll("[data-curve='training:loss and harms'] svg")).toHaveLength(2);
  });

  it("does not draw chance as a harm: a change is a part of the smallest detectable one", async () => {
    await writeSampleRun(runDir, (snapshot) => {
      const { accuracy } = snapshot.metrics;
      const value = snapshot.step === 60 ? 0.92 : 0.93;
      return { ...snapshot, metrics: { accuracy: { ...accuracy!, value } } };
    });
    const run = await readRun(runDir);
    const training = [1, 2].map((step) => ({ step, runStep: step, metrics: { loss: 1 / step } }));
    const curve = lossAndHarms({ ...run, phases: run.phases.map((phase) => ({ ...phase, training })) })!;
    const harms = curve.points.filter(({ part }) => part === 0).map(({ value }) => value!);
    // One point of 11.7 points.
    expect(Math.max(...harms)).toBeCloseTo(0.01 / 0.117);
  });

  it("has no such chart without a loss or without a metric that has a direction", async () => {
    await writeStopped({}, [1]);
    expect(lossAndHarms(await readRun(runDir))).toBeNull();
  });
});

it("shows the agreement of a second judge at the last measurement, and says if it is unknown", async () => {
  const agreement = {
    name: "b<i>",
    kappa: 0.7234,
    kappa_ci95: [0.51, 0.88],
    same_decision: 0.9,
    graded_by_both: 40,
    misaligned: 12,
  };
  const lines = async (changes: object) => {
    const second_judge = { ...agreement, ...changes };
    await writeSampleRun(runDir, (snapshot) => ({
      ...snapshot,
      ...(snapshot.phase === "em" && { second_judge }),
    }));
    return [...(await page()).querySelectorAll("#curves-1 .key")]
      .map(text)
      .filter((one) => one!.includes("judge"));
  };
  expect(await lines({})).toEqual([
    "em: Second judge b<i> at step 60: κ 0.72 [0.51, 0.88]; the same decision for 90.0 % of 40 answers, 12 misaligned by its grades. What is κ?",
  ]);
  expect(await lines({ kappa: null, kappa_ci95: null })).toEqual([
    expect.stringContaining("step 60: κ unknown; the same"),
  ]);
  expect(await lines({ kappa: "high" })).toEqual([]);
});

it("draws reliability diagrams of the first and the last measurement, with the area by the number of questions", async () => {
  await writeSampleRun(runDir, (snapshot) => ({
    ...snapshot,
    ece: 0.1,
    reliability: [
      { from: 0.4, n: 1, confidence: 0.5, accuracy: 0.25 },
      { from: 0.9, n: 4, confidence: 1, accuracy: 1 },
    ],
  }));
  const figures = [...(await page()).querySelectorAll("#curves-1 figure")].filter((one) =>
    /ECE/.test(text(one)!),
  );
  expect(figures.map((one) => text(one.querySelector("figcaption")))).toEqual([
    "coupling step 0 ECE 0.10",
    "em step 60 ECE 0.10",
  ]);
  const svg = figures[1]!.querySelector("svg")!;
  const dots = [...svg.querySelectorAll("[fill-opacity] > circle")];
  const of = (name: string) => dots.map((dot) => Number(dot.getAttribute(name)));
  const [[small, large], [x, right], [y, top]] = [of("r"), of("cx"), of("cy")];
  expect(large! ** 2 / small! ** 2).toBeCloseTo(4);
  // The second dot is in the upper right corner; the axes begin at 40 and 226.
  expect((x! - 40) / (right! - 40)).toBeCloseTo(0.5);
  expect((226 - y!) / (226 - top!)).toBeCloseTo(0.25);
  expect(text(svg.querySelector("title"))).toBe("confidence 50.0 %: 25.0 % of 1 question right");
});

it("weighs at most 160 kB without data", async () => {
  expect(Buffer.byteLength(renderPage(await readRun(runDir)))).toBeLessThanOrEqual(160_000);
});

it("renders a page for a run without snapshots", async () => {
  expect(text((await page()).querySelector("main"))).toContain("This run has no snapshots yet");
});
