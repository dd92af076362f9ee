// The workflow of docs/guides/ci.md: its gate step runs as GitHub runs it, against a run for each exit code.
import { execFile } from "node:child_process";
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { beforeEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { builtMain } from "../../terminal/built-main.test-data.ts";
import { writeGatedRun } from "./gated-run.test-data.ts";

interface Workflow {
  readonly on: string;
  readonly jobs: Readonly<Record<string, { readonly steps: readonly Step[] }>>;
}
interface Step {
  readonly name?: string;
  readonly run?: string;
  readonly uses?: string;
  readonly with?: { readonly path?: string };
}

const page = await readFile(
  fileURLToPath(new URL("../../../../../docs/guides/ci.md", import.meta.url)),
  "utf8",
);
const [, text = ""] = /```yaml\n(name: [^]*?)\n```/.exec(page)!;
const { on, jobs } = parse(text) as Workflow;
const { steps } = jobs["fine-tune"]!;
const script = steps.find(({ name }) => name === "Gate")!.run!;

it("trains, gates, writes the page and uploads it, in this order", () => {
  expect(on).toBe("pull_request");
  const places = [
    "periodic-eval train",
    "periodic-eval gate",
    "periodic-eval report",
    "actions/upload-artifact",
  ].map((words) => steps.findIndex(({ run = "", uses = "" }) => `${run}${uses}`.includes(words)));
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect(places).not.toContain(-1);
});

describe("the gate step", () => {
  let folder: string;
  beforeEach(async () => {
    folder = temporaryFolder();
    await mkdir(join(folder, "bin"));
    const npx = join(folder, "bin", "npx");
    await writeFile(npx, `#!/bin/sh\nshift\nexec '${process.execPath}' '${builtMain()}' "$@"\n`);
    await chmod(npx, 0o755);
    await mkdir(join(folder, "runs"));
  });

  /** Runs the step's script in the folder; returns its exit code, the step summary and the JUnit file. */
  async function runStep() {
    const summary = join(folder, "summary.md");
    await writeFile(summary, "");
    const path = `${join(folder, "bin")}${delimiter}${process.env["PATH"]}`;
    const { code, out } = await new Promise<{ readonly code: unknown; readonly out: string }>((resolve) => {
      execFile(
        "bash",
        ["--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        { cwd: folder, env: { ...process.env, PATH: path, GITHUB_STEP_SUMMARY: summary } },
        (error, stdout) => resolve({ code: error?.code ?? 0, out: stdout }),
      );
    });
    const junit = await readFile(join(folder, "runs/1/gate.xml"), "utf8").catch(() => null);
    return { code, out, summary: await readFile(summary, "utf8"), junit };
  }
  const train = (options: Parameters<typeof writeGatedRun>[1]) =>
    writeGatedRun(join(folder, "runs", "1"), options);

  it("ends with 0 after a training that changes nothing", async () => {
    await train({});
    const { code, summary, junit } = await runStep();
    expect(code).toBe(0);
    expect(summary).toContain("✅ periodic-eval gate: 2 conditions: 2 passed");
    expect(junit).toContain('tests="2" failures="0" errors="0"');
  });

  it("ends with 1 after a training that makes the model worse", async () => {
    await train({ right: [90, 25], misaligned: 10 });
    const { code, summary, junit } = await runStep();
    expect(code).toBe(1);
    expect(summary).toContain("❌ periodic-eval gate: 2 conditions: 2 failed");
    expect(junit).toContain('tests="2" failures="2" errors="0"');
  });

  it("ends with 2 if the training did not measure what a condition names", async () => {
    await train({ alignment: false });
    expect(await runStep()).toEqual({ code: 2, out: "", summary: "", junit: null });
  });

  it("ends with 3 if a file of the run is lost", async () => {
    await train({});
    const snapshots = join(folder, "runs/1/periodic_eval/em");
    await rename(join(snapshots, "capability_step_2.json"), join(folder, "lost.json"));
    const { code, summary, junit } = await runStep();
    expect(code).toBe(3);
    expect(summary).toContain("⚠️ periodic-eval gate: 2 conditions: 1 passed, 1 inconclusive");
    expect(junit).toContain('tests="2" failures="0" errors="1"');
    await rm(join(folder, "runs"), { recursive: true });
    expect((await runStep()).code).toBe(3);
  });
});
