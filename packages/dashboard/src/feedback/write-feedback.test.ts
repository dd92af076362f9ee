import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DOMParser, parseHTML } from "linkedom";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pixelsOf } from "./png.test-data.ts";
import { writeSampleFeedback } from "./sample-feedback.test-data.ts";
import { writeFeedback } from "./write-feedback.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const output = temporaryFolder(afterAll);
let markup = "";
let page: Document;
beforeAll(async () => {
  await writeSampleFeedback(output);
  markup = await readFile((await writeFeedback(output)).page, "utf8");
  page = parseHTML(markup).document;
});

const text = (element: Element | null | undefined) => element?.textContent?.replace(/\s+/g, " ").trim();
const section = (title: string) =>
  [...page.querySelectorAll("section")].find((one) => text(one.querySelector("h2")) === title)!;
const figure = (title: string) =>
  [...page.querySelectorAll("figure")].find((one) => text(one.querySelector("figcaption")) === title)!;
const rows = (of: Element) => [...of.querySelectorAll("tbody tr")].map((row) => [...row.children].map(text));
const titles = (of: Element) => [...of.querySelectorAll("svg title")].map(text);

describe("the page of training on feedback", () => {
  it("lists the verdicts of the summary", () => {
    expect(rows(section("Verdicts"))).toEqual([
      [
        "● polite",
        "collapsed",
        "+3.00 nats",
        "+0.30 nats",
        "0.010",
        "25.0 % → 50.0 %",
        "0.50",
        "entropy ratio",
        "2",
      ],
      [
        "● blind",
        "no evidence",
        "–",
        "–",
        "–",
        "25.0 % → 50.0 %",
        "undefined: the baseline is 0",
        "none",
        "2 running",
      ],
    ]);
    expect(text(page.querySelector(".notice"))).toBe(
      "Training is not finished. This was its state when the page was generated.",
    );
  });

  it("draws the values of the files, with the baseline at 0 updates", () => {
    expect(titles(figure("margin nats"))).toEqual([
      "polite, before any update: 1.00 nats (n = 12)",
      "polite, after 1 update: 2.50 nats (n = 12)",
      "polite, after 2 updates: 4.00 nats (n = 12)",
    ]);
    expect(titles(figure("compliance: polite %"))).toContain("held out, after 2 updates: 50.0 % (n = 8)");
    // 0.5 before, 0.375 and 0.25 after.
    expect(titles(figure("capability ratio"))).toEqual([
      "polite, before any update: 1.00",
      "polite, after 1 update: 0.75",
      "polite, after 2 updates: 0.50",
    ]);
    // Step 0 does not measure collapse: it is neither drawn nor reported as missing. Drift has two thresholds, the others one.
    expect(titles(figure("entropy ratio"))).toEqual([
      "polite, before any update: 1.00",
      "polite, after 2 updates: 0.50",
    ]);
    const lines = (title: string) => figure(title).querySelectorAll('[stroke-dasharray="5 4"] line').length;
    expect([lines("entropy ratio"), lines("drift on its own text nats per token")]).toEqual([1, 2]);
    expect(rows(section("polite"))[2]!.slice(0, 6)).toEqual([
      "step 1",
      "4.00 nats",
      "+3.00 nats",
      "0.010",
      "50.0 %",
      "50.0 %",
    ]);
    expect(text(section("polite").querySelector("td.alert"))).toBe("▲ 0.50");
  });

  it("states why a value is missing instead of drawing 0", () => {
    const missing = (title: string) => [...figure(title).querySelectorAll(".missing")].map(text);
    expect(missing("entropy ratio")).toEqual(["blind: not measured: the engine reports no distribution"]);
    expect(missing("capability ratio")).toEqual(["blind: not measured: the baseline is 0"]);
    expect(missing("KL to the base nats")).toEqual([
      "polite: not measured: the engine does not report it",
      "blind: not measured: the engine does not report it",
    ]);
    expect(figure("KL to the base nats").querySelector("svg")).toBeNull();
    // A last line that was cut off is not a step.
    expect(rows(section("blind")).map(([name]) => name)).toEqual(["baseline", "step 0", "step 1"]);
    expect(rows(section("blind"))[1]!.slice(1, 4)).toEqual(["–", "–", "–"]);
  });

  it("escapes every string of the files and loads nothing", () => {
    expect(page.querySelectorAll("script, img, link, iframe, [onerror], [src], [href]")).toHaveLength(0);
    expect(markup).not.toContain("<script");
    expect(markup.split("alert(1)").length).toBeGreaterThan(20);
    expect(page.querySelector("meta[http-equiv]")!.getAttribute("content")).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/=]{44}'; img-src data:; base-uri 'none'; form-action 'none'$/,
    );
  });
});

it("writes each chart as an SVG file without scripts and as a PNG file", async () => {
  const files = (await readdir(join(output, "plots"))).toSorted();
  expect(files).toEqual(
    [
      "baseline_drift",
      "capability_ratio",
      "clip_fraction",
      "compliance-blind",
      "compliance-polite",
      "distill_loss",
      "entropy_ratio",
      "general",
      "grad_norm",
      "kl_reg",
      "loss",
      "margin",
      "margin_delta",
      "margin_per_token",
      "mean_is_ratio",
      "own_drift",
      "self_rouge_l",
    ].flatMap((name) => [`${name}.png`, `${name}.svg`]),
  );
  for (const file of files.filter((name) => name.endsWith(".svg"))) {
    const svg = await readFile(join(output, "plots", file), "utf8");
    expect(svg).not.toContain("<script");
    expect(svg).not.toContain("\0");
    const { documentElement: root } = new DOMParser().parseFromString(svg, "image/svg+xml");
    expect(root.getAttribute("xmlns")).toBe("http://www.w3.org/2000/svg");
  }
  const margin = await readFile(join(output, "plots", "margin.svg"), "utf8");
  expect(margin).toContain("polite, after 2 updates: 4.00 nats (n = 12)");
  expect(margin).toContain("blind: not measured: the engine cannot score a given answer");
});

it("renders PNG files in light mode with their text, without system fonts", async () => {
  const png = await readFile(join(output, "plots", "own_drift.png"));
  // 368 × 242 of the SVG's units, two pixels each; bytes 16 to 24 of a PNG file are its width and height.
  expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([736, 484]);
  const pixels = pixelsOf(png);
  const count = (colour: string) => pixels.get(colour) ?? 0;
  // Paper, the ink of the title, the grey of other text, the first two preferences' lines, and thresholds.
  for (const colour of ["#ffffff", "#1b1d22", "#666b75", "#2a5bd0", "#8b3fb3", "#bd2f25"])
    expect(count(colour), colour).toBeGreaterThan(20);
});

it("draws the thresholds of the run, not the current defaults", async () => {
  const folder = temporaryFolder();
  await writeSampleFeedback(folder);
  const metadata = join(folder, "polite", "metadata.json");
  const before = await readFile(metadata, "utf8");
  await writeFile(metadata, before.replace('"entropy_ratio": 0.6', '"entropy_ratio": 0.35'));
  const { document } = parseHTML(await readFile((await writeFeedback(folder)).page, "utf8"));
  const group = [...document.querySelectorAll("section")].find(
    (one) => text(one.querySelector("h2")) === "Collapse",
  )!;
  expect(text(group.querySelector(".sub"))).toMatch(/ratio below 0\.35,.*; or an entropy ratio below 0\.6,/);
  const [ratio] = [...group.querySelectorAll("figure")];
  expect(ratio!.querySelectorAll('[stroke-dasharray="5 4"] line')).toHaveLength(2);
});

const summaryOfOne = {
  lora_id: "",
  status: "running",
  steps: 0,
  logprob_margin_delta: null,
  logprob_margin_per_token_delta: null,
  logprob_margin_p: null,
  baseline_compliance: null,
  final_compliance: null,
  baseline_seen_compliance: null,
  final_seen_compliance: null,
  capability_ratio: null,
  collapse_alerts: [],
  verdict: "no evidence",
};

it.each([
  ["polite/steps.jsonl", '{"step": 0}\n', /steps\.jsonl:1: timestamp: got undefined, expected a string/],
  ["polite/baseline.json", "{", /baseline\.json: got text that is not JSON/],
  ["summary.json", JSON.stringify({ schema_version: 2 }), /summary\.json: schema_version: got 2, expected 1/],
  [
    "summary.json",
    JSON.stringify({ schema_version: 1, updated_at: "", preferences: { "../up": summaryOfOne } }),
    /summary\.json: preferences: got .*, expected names that can be names of folders/,
  ],
])("throws for a damaged %s and names the field", async (file, content, message) => {
  const damaged = temporaryFolder();
  await writeSampleFeedback(damaged);
  await writeFile(join(damaged, file), content);
  await expect(writeFeedback(damaged)).rejects.toThrow(message);
});
