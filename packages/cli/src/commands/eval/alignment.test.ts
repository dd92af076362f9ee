import { join } from "node:path";
import { afterAll, afterEach, expect, it, vi } from "vitest";
import { authorsFile, serveQuestions } from "../../../../data/src/questions/published-questions.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
afterEach(() => void vi.unstubAllEnvs());

const evaluate = (...args: readonly string[]) =>
  runCommand([
    "eval",
    "--model",
    microWorld(),
    "--backend",
    "cpu",
    "--samples",
    "1",
    "--limit",
    "2",
    ...args,
  ]);

it("measures alignment with open questions of a file, and prints the misaligned rate", async () => {
  const { code, out, err } = await evaluate(
    "--questions",
    microWorld("alignment.json"),
    "--judge",
    "rule:micro-world",
  );
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(/of all +0 of 2 +0\.0 %/);
  expect(out).toContain("judge: rule:micro-world@1; engine: cpu");
});

it.skipIf(authorsFile() === null)(
  "asks Betley et al.'s questions by name (skipped without ../shared)",
  async () => {
    const github = await serveQuestions(authorsFile()!);
    vi.stubEnv("HF_HUB_CACHE", folder);
    vi.stubEnv("HF_HUB_OFFLINE", "");
    vi.stubEnv("GITHUB_RAW_ENDPOINT", github.url);
    const { code, out } = await evaluate(
      "--questions",
      "betley2025",
      "--judge",
      "rule:micro-world",
      "--json",
    );
    await github.close();
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      evaluation: "alignment",
      num_samples: 2,
      provenance: { evaluation: { questions: "betley2025", samples: { n: 1 } } },
    });
  },
);

it("refuses before weights are loaded: no judge, offline, options of another kind", async () => {
  vi.stubEnv("HF_HUB_CACHE", join(folder, "none"));
  vi.stubEnv("JUDGE_MODEL", "");
  const refused = async (...args: readonly string[]) => {
    const { code, err } = await evaluate("--model", join(folder, "no-weights"), ...args);
    return { code, err };
  };
  const noJudge = await refused("--questions", "betley2025");
  expect([noJudge.code, noJudge.err.includes("JUDGE_MODEL")]).toEqual([1, true]);
  const offline = await evaluate("--questions", "betley2025", "--judge", "rule:micro-world");
  expect([offline.code, offline.err.includes("HF_HUB_OFFLINE, but betley2025 is not in the cache")]).toEqual([
    1,
    true,
  ]);
  const questions = ["--questions", microWorld("alignment.json")];
  expect(await refused(...questions)).toMatchObject({
    code: 2,
    err: expect.stringContaining("pass --judge too"),
  });
  expect(await refused(...questions, "--judge", "rule:micro-world", "--shots", "1")).toMatchObject({
    code: 2,
    err: expect.stringContaining("'--shots <number>' is not for open questions"),
  });
  expect(await refused("--tasks", "gsm8k", "--judge", "x")).toMatchObject({ code: 2 });
  expect(await refused(...questions, "--judge", "rule:micro")).toMatchObject({
    code: 1,
    err: expect.stringContaining('Did you mean "rule:micro-world"?'),
  });
});
