import { parseHTML } from "linkedom";
import { describe, expect, it } from "vitest";
import { renderResults } from "./results-page.ts";
import type { ResultsRun } from "./paired-change.ts";
import { sampleResults } from "./sample-results.test-data.ts";
import { summarizeResults } from "./summarize-results.ts";

const pageOf = (runs: readonly ResultsRun[], reference?: number) =>
  parseHTML(renderResults(summarizeResults(runs, reference), "/runs/results/metrics.json")).document;
const text = (element: Element | null | undefined) => element?.textContent?.replace(/\s+/g, " ").trim();
const section = (page: Document, title: string) =>
  [...page.querySelectorAll("section")].find((one) => text(one.querySelector("h2")) === title)!;
const rowsOf = (of: Element) =>
  [...of.querySelector("table")!.querySelectorAll("tbody tr")].map((row) =>
    [...row.children].filter(({ className }) => className !== "plot").map(text),
  );

describe("three runs of a suite", () => {
  const page = pageOf(sampleResults);

  it("appear in the overview with standard errors and changes", () => {
    expect(rowsOf(section(page, "All tasks"))).toEqual([
      [
        "sft-on-a-rather-long-name-of-a-run",
        "0.5000 ± 0.0158 ▲ +0.1000",
        "0.2200 ± 0.0293 ▲ +0.1200",
        "19.2500 ± 0.5000 ▲ −2.2500",
      ],
      ["base reference", "0.4000 ± 0.0155", "0.1000 ± 0.0212", "21.5000 ± 0.5000"],
      ["dpo", "0.3400 ± 0.0150 ▼ −0.0600", "0.0900 ± 0.0202 ○ −0.0100", "–"],
    ]);
  });

  it("have a table for each task, with all metrics and groups", () => {
    const gsm8k = section(page, "gsm8k");
    expect([...gsm8k.querySelectorAll("thead th")].map(text)).toEqual([
      "run",
      "exact_match, strict-match ↑",
      "95 % interval",
      "exact_match, flexible-extract ↑",
    ]);
    expect(rowsOf(gsm8k)[0]!.at(-1)).toBe("0.2500 ± 0.0306 ▲ +0.1000");
    expect(text(gsm8k.querySelector(".sub"))).toBe("8 shots; n = 200");
    const mmlu = section(page, "mmlu");
    expect(text(mmlu.querySelector("summary"))).toBe("2 groups by acc ↑");
    expect(rowsOf(mmlu.querySelector("details")!)[1]).toEqual([
      "virology",
      "0.5167 ± 0.0204 ▲ +0.1167",
      "0.4000 ± 0.0200",
      "0.3167 ± 0.0190 ▼ −0.0833",
    ]);
    expect(section(page, "wiki").querySelector("details")).toBeNull();
    // The run without a value does not count.
    expect(text(section(page, "wiki").querySelector(".sub"))).toBe("n = 64");
  });

  it("are drawn on one scale, with a line at the reference run's value", () => {
    const plots = [...section(page, "wiki").querySelectorAll("svg")];
    const at = (plot: Element, element: string, name: string) =>
      Number(plot.querySelector(element)!.getAttribute(name));
    // The scale maps 18.25 to 22.5 to 178 of 190 points: 19.25 is at 6 + 178/4.25, 21.5 at 6 + 178 · 3.25/4.25.
    expect(plots.map((plot) => at(plot, "circle", "cx"))).toEqual([47.9, 142.1]);
    expect(plots.map((plot) => at(plot, ".of-reference", "x1"))).toEqual([142.1, 142.1]);
  });

  it("show their time if they share a name, and the chosen reference run", () => {
    const twice = pageOf([sampleResults[0]!, { ...sampleResults[1]!, name: "base" }, sampleResults[2]!], 1);
    expect(rowsOf(section(twice, "mmlu")).map(([name]) => name)).toEqual([
      "base 2026-01-02 03:04:05 UTC reference",
      "base 2026-01-01 03:04:05 UTC",
      "dpo",
    ]);
  });
});

it("shows no changes for a single run, and a notice if there are no runs", () => {
  const one = pageOf(sampleResults.slice(0, 1));
  expect(text(one.querySelector("main"))).not.toMatch(/[▲▼◆○]|reference/);
  expect(text(pageOf([]).querySelector(".notice"))).toBe("No run has finished yet.");
});

it("warns that smoke runs do not compare models", () => {
  const smoke = sampleResults.map((run) => ({ ...run, suite: { smoke: true, tasks: {} } }));
  expect(text(pageOf(smoke).querySelector(".notice"))).toContain("Smoke runs: ten documents");
});

it("escapes every string of the file and loads nothing", () => {
  const attack = `"><script>alert(1)</script><img src=x onerror='alert(2)'>`;
  const hostile = sampleResults.map((run): ResultsRun => {
    const keys = Object.keys(run.metrics).map((key) =>
      key.replace("gsm8k", `gsm8k${attack.replaceAll("/", "")}`),
    );
    const renamed = <T>(map: Readonly<Record<string, T>>) =>
      Object.fromEntries(Object.values(map).map((value, at) => [keys[at]!, value]));
    return {
      ...run,
      name: attack + run.name,
      method: attack,
      model: attack,
      adapter: attack,
      config_hash: attack,
      config_path: attack,
      timestamp: attack,
      run_hash: attack,
      metrics: renamed(run.metrics),
      stderr: renamed(run.stderr),
      n: renamed(run.n),
      ci95: renamed(run.ci95),
      higher_is_better: renamed(run.higher_is_better),
    };
  });
  const markup = renderResults(summarizeResults(hostile), `/${attack}/metrics.json`);
  const { document } = parseHTML(markup);
  expect(document.querySelectorAll("script, img, link, iframe, [onerror], [src], [href]")).toHaveLength(0);
  expect(markup).not.toContain("<script");
  expect(markup).toContain("▲ better, ▼ worse, ◆ changed, ○ no evidence");
  expect(markup.split("alert(1)").length).toBeGreaterThan(10);
  const policy = document.querySelector("meta[http-equiv]")!.getAttribute("content");
  expect(policy).toMatch(
    /^default-src 'none'; style-src 'sha256-[\w+/=]{44}'; img-src data:; base-uri 'none'; form-action 'none'$/,
  );
});
