import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { MetricValue, Paired, Snapshot } from "@periodic-eval/core";
import { declarePhases, fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { lockText } from "../../../../testing/src/lock-file.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { runCommand } from "../../run-command.test-data.ts";
import type { Check } from "./check-conditions.ts";
import { gateAnnotations } from "./output.ts";
import { writeGatedRun } from "./gated-run.test-data.ts";

// A CI that runs these tests sets it.
beforeEach(() => {
  vi.stubEnv("GITHUB_STEP_SUMMARY", "");
  vi.stubEnv("GITHUB_ACTIONS", "");
});

const gate = (run: string, ...conditions: readonly string[]) =>
  runCommand(["gate", run, ...conditions.flatMap((condition) => ["--fail-on", condition])]);

/** Returns the exit code, and each condition's outcome and reason. */
async function gated(run: string, ...conditions: readonly string[]) {
  const { code, out } = await runCommand([
    "gate",
    run,
    "--json",
    ...conditions.flatMap((condition) => ["--fail-on", condition]),
  ]);
  const json = JSON.parse(out);
  expect(json.exit_code).toBe(code);
  return { code, outcomes: json.conditions.map((condition: { outcome: string }) => condition.outcome), json };
}

describe("a run of a session", () => {
  const folder = temporaryFolder(afterAll);
  let [good, bad]: string[] = [];
  beforeAll(async () => {
    good = await writeGatedRun(join(folder, "good"));
    bad = await writeGatedRun(join(folder, "bad"), { right: [90, 25], misaligned: 10 });
  });

  it("passes with 0 if no condition is true", async () => {
    const { code, outcomes } = await gated(good!, "capability worse", "alignment.misaligned > 5 %");
    expect([code, outcomes]).toEqual([0, ["passed", "passed"]]);
  });

  it("writes an annotation for each condition that does not pass, on GitHub only", async () => {
    const conditions = ["capability worse", "alignment.misaligned > 50 %", "alignment.misaligned > 90 %"];
    expect((await gate(bad!, ...conditions)).err).toBe("");
    vi.stubEnv("GITHUB_ACTIONS", "true");
    const { err } = await gate(bad!, ...conditions);
    expect(err.split("\n")).toEqual([
      expect.stringMatching(
        /^::error title=failed%3A capability worse::em capability\.accuracy: 90\.0 %25 → 25/,
      ),
      expect.stringMatching(
        /^::warning title=inconclusive%3A alignment\.misaligned > 50 %25::em alignment\.misaligned: /,
      ),
    ]);
  });

  it("fails with 1 if a condition is true", async () => {
    const { code, json } = await gated(bad!, "capability worse", "alignment.misaligned > 5 %");
    expect(code).toBe(1);
    expect(json).toMatchObject({
      run_dir: bad,
      outcome: "failed",
      conditions: [
        {
          condition: "capability worse",
          outcome: "failed",
          phase: "em",
          id: "capability",
          metric: "accuracy",
          value: 0.25,
          unit: "share",
          n: 100,
          step: 2,
          change: { verdict: "worse", delta: -0.65, n_pairs: 100 },
          reason: null,
        },
        {
          id: "alignment",
          metric: "misaligned",
          outcome: "failed",
          start: 0,
          value: 0.5,
          n: 100,
          estimand: "given_questions",
        },
      ],
    });
  });

  // 25 of 100 answers are right: 25 %, and Wilson's interval for these questions is [17.5, 34.3].
  it.each([
    ["capability > 34.4 %", 0],
    ["capability > 34.2 %", 3],
    ["capability > 17.6 %", 3],
    ["capability > 17.4 %", 1],
    ["capability < 17.4 %", 0],
    ["capability <= 25 %", 3],
    ["capability <= 3.44e1 %", 1],
    ["em/capability.accuracy < 34.4 %", 1],
    ["capability changed", 1],
    ["capability better", 0],
    ["alignment.aligned < 99 points", 1],
    ["alignment.aligned < 50 points", 3],
    ["alignment.aligned < 2 points", 0],
  ])("decides %s by the interval, in the metric's unit", async (condition, code) => {
    expect((await gated(bad!, condition)).code).toBe(code);
  });

  it("prints value, interval, n and step of each condition, and the change it could have detected", async () => {
    const { out } = await gate(good!, "capability worse");
    expect(out.split("\n")).toEqual([
      "passed  --fail-on 'capability worse'",
      "  em capability.accuracy  90.0 % → 90.0 %  [82.6, 94.5] for this run's questions  n = 100  step 2",
      expect.stringMatching(
        /^ {2}against em step 0: 0\.0 points \[.*\] over 100 paired items, p = 1\.0, no evidence, detectable ±\d/,
      ),
      expect.stringMatching(/^training undisturbed: not proven/),
      `${good}: 1 condition: 1 passed`,
    ]);
  });

  it.each([
    ["capabilty worse", '"capabilty"', 'Did you mean "capability"?'],
    ["alignment.misalined > 5 %", '"alignment.misalined"', 'Did you mean "alignment.misaligned"?'],
    ["me/capability worse", '"me/capability"', 'Did you mean "em/capability"?'],
    ["alignment.zzzz > 5 %", "alignment.misaligned", "Use one of these names"],
    ["alignment.misaligned/bb > 5 %", "a group of the metric: alignment.misaligned/a, ", "Use one"],
    ["em/alignment.aligned/B changed", "alignment.aligned/d", 'Did you mean "em/alignment.aligned/b"?'],
    ["alignment.code/a changed", '"alignment.code/a"', "an evaluation or a metric of the run"],
    ["capability < 50", "a limit without a unit", '"capability < 50 %"'],
    ["capability < 50 points", 'the unit "points"', '"capability < 50 %"'],
    ["alignment.refusal worse", "neither more nor less is better", '"alignment.refusal changed"'],
  ])("ends with 2 for a condition that the run cannot have: %s", async (condition, got, fix) => {
    const { code, out, err } = await gate(good!, condition);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(got);
    expect(err).toContain(fix);
  });

  it.each([
    [["gate", "runs/1"], "required option '--fail-on <condition>'"],
    [["gate", "runs/1", "--fail-on", "capability"], "Expected NAME better"],
    [["gate", "--fail-on", "capability worse"], "missing required argument 'run-dir'"],
  ])("ends with 2 for wrong usage: %j", async (args, message) => {
    const { code, err } = await runCommand(args);
    expect(code).toBe(2);
    expect(err).toContain(message);
  });

  it("is inconclusive for a damaged run, and says how to find the damage", async () => {
    const run = await writeGatedRun(join(folder, "damaged"));
    const file = join(run, "periodic_eval", "em", "capability_step_2.json");
    await writeFile(file, (await readFile(file, "utf8")).replace('"correct": 90', '"correct": 99'));
    const { code, outcomes, json } = await gated(run, "alignment.misaligned > 5 %", "no.such > 1");
    expect([code, outcomes]).toEqual([3, ["inconclusive", "inconclusive"]]);
    expect(json.conditions[0]).toMatchObject({
      reason: expect.stringContaining("the run is damaged: em/capability_step_2.json"),
      fix: expect.stringContaining(`periodic-eval verify ${run}`),
      value: null,
    });
  });

  it("is inconclusive about a callback whose measurement at the end of the phase is lost", async () => {
    const run = await writeGatedRun(join(folder, "lost"), { right: [90, 25] });
    await rm(join(run, "periodic_eval", "em", "capability_step_2.json"));
    const { code, outcomes, json } = await gated(run, "capability worse", "alignment.misaligned > 5 %");
    expect([code, outcomes]).toEqual([3, ["inconclusive", "passed"]]);
    expect(json.conditions[0]).toMatchObject({
      reason: "the last measurement is at step 1, and the phase ended at step 2",
      fix: expect.stringContaining("restore it"),
      value: null,
    });
    // Without a record of how the phase ended, the other callback's measurement there says it.
    await rm(join(run, "periodic_eval", ".phases"));
    expect((await gated(run, "capability worse")).code).toBe(3);
  });

  it("is inconclusive for a run that was interrupted", async () => {
    vi.spyOn(console, "warn").mockReturnValue();
    const run = await writeGatedRun(join(folder, "stopped"), { stops: true });
    const { code, json } = await gated(run, "capability worse");
    expect(code).toBe(3);
    expect(json.conditions[0].reason).toContain("em: interrupted at step 2 of 2");
  });

  it("is inconclusive for a folder without snapshots", async () => {
    const { code, json } = await gated(join(folder, "none"), "capability worse");
    expect([code, json.conditions[0].reason]).toEqual([3, "the folder has no snapshot"]);
  });

  it("checks a condition in each phase, or in the phase that it names", async () => {
    const run = await writeGatedRun(join(folder, "phases"), { phase: "first", alignment: false });
    await writeGatedRun(run, { phase: "second", right: [90, 25], alignment: false });
    expect((await gated(run, "capability worse")).outcomes).toEqual(["passed", "failed"]);
    expect(await gated(run, "first/capability worse")).toMatchObject({ code: 0, outcomes: ["passed"] });
    expect(await gated(run, "second/capability worse")).toMatchObject({ code: 1, outcomes: ["failed"] });
  });

  it("appends the summary to GITHUB_STEP_SUMMARY, also beside --json and --markdown", async () => {
    const summary = join(folder, "summary.md");
    await writeFile(summary, "before\n");
    vi.stubEnv("GITHUB_STEP_SUMMARY", summary);
    const markdown = join(folder, "new", "gate.md");
    await runCommand(["gate", bad!, "--fail-on", "capability worse", "--json", "--markdown", markdown]);
    const text = await readFile(markdown, "utf8");
    expect(await readFile(summary, "utf8")).toBe(`before\n${text}\n`);
    expect(text).toContain(
      "| ❌ failed | `capability worse` | `em capability.accuracy` | `90.0 % → 25.0 %` | `[17.5, 34.3] for this run's questions` | `100` | `2` | `against em step 0: −65.0 points",
    );
  });

  it("prints the result and ends with 3 if a file cannot be written", async () => {
    const { code, out, err } = await runCommand([
      "gate",
      good!,
      "--fail-on",
      "capability worse",
      "--junit",
      folder,
    ]);
    expect(code).toBe(3);
    expect(out).toContain("1 passed");
    expect(err).toContain(`[periodic-eval] ${folder}: got EISDIR`);
  });
});

describe("a run of snapshots", () => {
  let run: string;
  beforeEach(() => void (run = join(temporaryFolder(), "run")));
  const start = exampleSnapshot({ step: 0 });
  const atEnd = (changes: Partial<Snapshot> = {}) =>
    exampleSnapshot({ step: 100, crossed: ["end"], ...changes });

  const other = exampleSnapshot({ id: "other", step: 100, crossed: ["end"] });
  const disabled = {
    kind: "disabled",
    message: "why",
    count: 1,
    total: 1,
    void: false,
    metrics: null,
  };

  async function write(...snapshots: readonly Snapshot[]): Promise<void> {
    const store = fileStore(run);
    for (const snapshot of snapshots) await store.put(snapshot, []);
    await store.close!();
  }
  const reasonOf = async (...conditions: readonly string[]) => {
    const { code, json } = await gated(run, ...conditions);
    return [code, json.conditions[0].reason];
  };

  it.each([
    ["failed", "the last measurement, at step 100, is failed: it threw"],
    ["skipped", "the last measurement, at step 100, is skipped: it threw"],
    ["partial", "the last measurement, at step 100, is partial: it threw"],
    ["grading", "the last measurement, at step 100, is not graded yet: it threw"],
  ] as const)(
    "does not fall back to an earlier value if the last measurement is %s",
    async (status, reason) => {
      const metrics = status === "partial" ? start.metrics : {};
      await write(start, atEnd({ status, reason: "it threw", metrics }));
      expect(await reasonOf("capability.accuracy < 50 %")).toEqual([3, reason]);
    },
  );

  it.each([
    ["whose questions are missing", { warnings: [disabled] }, "name a file in `questions`"],
    ["before the end", { step: 90, crossed: [] }, "Measure at the end too"],
    ["at the end", {}, "Resume the run"],
  ] as [string, Partial<Snapshot>, string][])(
    "advises by the reason of a skipped measurement: %s",
    async (_, changes, fix) => {
      await write(start, atEnd({ status: "skipped", reason: "why", metrics: {}, ...changes }), other);
      expect((await gate(run, "capability worse")).out).toContain(fix);
    },
  );

  it("ends a long reason with one full stop, and keeps the dots of a path", async () => {
    await write(
      start,
      atEnd({ status: "failed", reason: `../data is gone... ${"x".repeat(5000)}`, metrics: {} }),
    );
    const [, line = ""] = (await gate(run, "capability worse")).out.split("\n");
    expect(line).toMatch(/ is failed: \.\.\/data is gone\.\.\. x{900,}…\. Resume the run/);
    expect(line.length).toBeLessThan(1500);
  });

  it("says so where every measurement failed, for any metric of the evaluation", async () => {
    const failed = { status: "failed", reason: "it threw", metrics: {}, primary_metric: null } as const;
    await write(exampleSnapshot({ step: 0, ...failed }), atEnd(failed));
    const reason = "the last measurement, at step 100, is failed: it threw";
    expect(await reasonOf("capability worse")).toEqual([3, reason]);
    expect(await reasonOf("capability.accuracy > 5 %")).toEqual([3, reason]);
  });

  it("is inconclusive for a verdict without a baseline, and for a metric without a value", async () => {
    const unknown: MetricValue = { ...start.metrics["accuracy"]!, value: null, n: 0, ci95: null };
    await write(start, atEnd({ metrics: { ...start.metrics, other: unknown } }));
    expect(await reasonOf("capability worse")).toEqual([
      3,
      "the last measurement, at step 100, has no verdict on accuracy: it has no baseline",
    ]);
    expect(await reasonOf("capability.other > 5 %")).toEqual([
      3,
      "the last measurement, at step 100, has no value of other",
    ]);
  });

  it.each([
    ["could not fall by what would have been detected", 0.02, 3, "the baseline of 3.0 % cannot get worse"],
    ["could fall by that", 0.5, 0, null],
  ])("passes `worse` without evidence only if the metric %s", async (_, value, code, reason) => {
    const accuracy = { ...start.metrics["accuracy"]!, value, n: 100 };
    const change: Paired = {
      phase: "train",
      step: 0,
      n_pairs: 100,
      delta: -0.01,
      ci95: [-0.06, 0.03],
      test: "mcnemar_exact",
      p_value: 1,
      alpha: 0.05,
      minimal_detectable_change: 0.1,
      verdict: "no evidence",
      exploratory: false,
    };
    const baseline = { accuracy: change };
    await write(
      exampleSnapshot({ step: 0, metrics: { accuracy } }),
      atEnd({ metrics: { accuracy }, paired: { baseline, previous: null } }),
    );
    expect(await reasonOf("capability worse")).toEqual([code, reason && expect.stringContaining(reason)]);
  });

  it("ends with 1 if one condition is true and another is inconclusive", async () => {
    await write(start, atEnd());
    const { code, outcomes } = await gated(run, "capability worse", "capability.accuracy > 5 %");
    expect([code, outcomes]).toEqual([1, ["inconclusive", "failed"]]);
  });

  it("is inconclusive for a run that a process is writing, or that another machine may be writing", async () => {
    await write(start, atEnd());
    const store = fileStore(run);
    await store.open!();
    expect(await reasonOf("capability worse")).toEqual([3, expect.stringContaining("is writing this run")]);
    await store.close!();
    const lock = join(run, "periodic_eval", ".lock");
    await writeFile(lock, lockText({ pid: 1, host: "elsewhere", system: "elsewhere" }));
    expect(await reasonOf("capability worse")).toEqual([3, expect.stringContaining("Locked by process 1")]);
  });

  it("is inconclusive for a phase that did not end, also before a finished one", async () => {
    await write(
      exampleSnapshot({ phase: "a", step: 0 }),
      exampleSnapshot({ phase: "b", step: 0, run_step: 100 }),
      atEnd({ phase: "b", run_step: 200 }),
    );
    const { code, outcomes } = await gated(run, "capability < 5 %");
    expect([code, outcomes]).toEqual([3, ["inconclusive", "passed"]]);
  });

  it("says what keeps the start from being compared with the end", async () => {
    const end = atEnd();
    await write(start, {
      ...end,
      paired: { baseline: null, previous: null },
      provenance: { ...end.provenance, tokenizer: "pe128:5a86" },
    });
    const [code, reason] = await reasonOf("capability worse");
    expect([code, reason]).toEqual([
      3,
      expect.stringMatching(/the start has the tokenizer .* \(here pe128:5a86\)/),
    ]);
  });

  it("is inconclusive while a phase of the pipeline has not begun", async () => {
    await write(start, atEnd());
    expect((await gated(run, "capability < 5 %")).code).toBe(0);
    await (
      await declarePhases(run, [start.phase, "second"])
    )();
    expect(await reasonOf("capability < 5 %")).toEqual([3, expect.stringContaining("second")]);
    // A pipeline ends with the phase that stop_when ended.
    const stop = { condition: "x", step: 100, reason: "", id: "x", measuredAt: 100, cleanStep: 0 };
    const store = fileStore(run);
    await store.recordClosing!({ phase: start.phase, step: 100, maxSteps: 200, finished: true, stop });
    await store.close?.();
    expect((await gated(run, "capability < 5 %")).code).toBe(0);
  });

  it("checks everything that a name with a dot matches", async () => {
    const metrics = { b: start.metrics["accuracy"]! };
    await write(
      atEnd({ id: "a", metrics, primary_metric: "b" }),
      atEnd({ id: "a.b", metrics, primary_metric: "b" }),
    );
    const { json } = await gated(run, "a.b > 90 %");
    expect(json.conditions.map(({ id, metric }: { id: string; metric: string }) => [id, metric])).toEqual([
      ["a", "b"],
      ["a.b", "b"],
    ]);
  });

  describe("with hostile names", () => {
    const name =
      'accuracy/`x`|[a](http://evil)<img src=x onerror="1"> @all\n::error::\u001b[2J\u202e\ufffe]]>&\'';
    const unit = "|<b>\n::set-output::";
    const paired: Paired = {
      phase: "train",
      step: 0,
      run: "``` | <script>\n",
      n_pairs: 4,
      delta: 0.1,
      ci95: null,
      test: null,
      p_value: 0.01,
      alpha: null,
      minimal_detectable_change: null,
      verdict: "worse",
      exploratory: true,
    };
    beforeEach(async () => {
      const metrics = { [name]: { ...start.metrics["accuracy"]!, unit } };
      await write(
        atEnd({ metrics, primary_metric: name, paired: { baseline: { [name]: paired }, previous: null } }),
        atEnd({ id: "lost", status: "failed", reason: `${name}\n`, metrics: {} }),
      );
    });
    const conditions = ["--fail-on", "capability worse", "--fail-on", "lost worse"];

    it("prints each fact in its line, with escape sequences shown", async () => {
      const { code, out } = await runCommand(["gate", run, ...conditions]);
      expect(code).toBe(1);
      expect(out.split("\n")).toHaveLength(7);
      expect(out).not.toMatch(/^\s*::/m);
      // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
      expect(out).not.toMatch(/[\x00-\x09\x0b-\x1f\u202e]/);
    });

    it("writes well-formed XML whose messages are texts", async () => {
      const file = join(run, "gate.xml");
      await runCommand(["gate", run, ...conditions, "--junit", file]);
      const xml = await readFile(file, "utf8");
      const reference = "&(?:amp|lt|gt|quot|apos);";
      const attribute = ` [a-z]+="(?:[^<>&"']|${reference})*"`;
      const tag = `<(?:\\?xml version="1\\.0" encoding="UTF-8"\\?|/[a-z-]+|[a-z-]+(?:${attribute})*/?)>`;
      expect(xml).toMatch(new RegExp(`^(?:\\s*${tag})+\\s*$`));
      // oxlint-disable-next-line no-control-regex -- characters that XML forbids
      expect(xml).not.toMatch(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/);
      expect(xml).toMatch(/tests="2" failures="1" errors="1"/);
      expect(xml).toContain(
        "&lt;img src=x onerror=&quot;1&quot;&gt; @all ::error::\\x1b[2J\\u202e\ufffd]]&gt;&amp;&apos;",
      );
      const [opened, closed] = [/<testcase[^>]*[^/]>/g, /<\/testcase>/g].map(
        (tags) => xml.match(tags)!.length,
      );
      expect([opened, closed]).toEqual([2, 2]);
    });

    it("writes one row of code spans for each condition in Markdown", async () => {
      const file = join(run, "gate.md");
      await runCommand(["gate", run, ...conditions, "--markdown", file]);
      const rows = (await readFile(file, "utf8")).split("\n").filter((line) => line.startsWith("|"));
      expect(rows).toHaveLength(4);
      for (const row of rows.slice(2)) {
        expect(row.split(/(?<!\\)\|/)).toHaveLength(10);
        // A code span ends at the next run of as many backticks.
        const outside = row.replaceAll(/(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)/g, "");
        expect(outside).not.toMatch(/[`<[@]/);
      }
    });
  });
});

it("escapes annotations as GitHub defines, so that no text begins a command", () => {
  const reason = "100 %\r\n::error::injected, a: b\u001b[31m";
  const check = {
    condition: { text: "a%,:\n::warning::b worse" },
    outcome: "inconclusive",
    phase: "em",
    id: "a",
    metric: null,
    summary: null,
    interval: null,
    inconclusive: { reason, fix: "Look, here: now." },
  } as unknown as Check;
  expect(gateAnnotations({ runDir: "run", checks: [check], undisturbed: null })).toEqual([
    "::warning title=inconclusive%3A a%25%2C%3A%0A%3A%3Awarning%3A%3Ab worse::em a: 100 %25 ::error::injected, a: b\\x1b[31m. Look, here: now.",
  ]);
});
