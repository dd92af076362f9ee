import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { appendRun } from "@periodic-eval/tasks";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { runCommand } from "../../run-command.test-data.ts";
import { builtMain } from "../../terminal/built-main.test-data.ts";
import { oneResult } from "../../run/one-result.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const root = temporaryFolder(afterAll);
beforeAll(async () => {
  const store = fileStore(join(root, "run"));
  await store.put(exampleSnapshot({ phase: "em", step: 100, status: "partial" }), []);
  await store.close?.();
  await mkdir(join(root, "results"));
  await appendRun(join(root, "results", "metrics.json"), oneResult);
});

it("serves the runs and suite results in a folder until Ctrl-C", async () => {
  const args = [builtMain(), "report", root, "--serve", "0"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const address = String(line).trim();
  expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1\/eval$/);
  const reply = await fetch(address, { headers: { Accept: "application/json" } });
  const { runs } = (await reply.json()) as { readonly runs: readonly { readonly results_dir: string }[] };
  expect(runs.map(({ results_dir: path }) => path).toSorted()).toEqual(["results", "run"]);
  expect(runs.find(({ results_dir: path }) => path === "results")).toMatchObject({
    problem: null,
    tasks: [{ name: "arc" }],
  });
  child.kill("SIGINT");
  expect(await once(child, "close")).toEqual([0, null]);
  await expect(fetch(address)).rejects.toThrow();
});

it("ends if the command that serves its run has ended before it listens", { timeout: 20_000 }, async () => {
  const args = [builtMain(), "report", root, "--serve", "0"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe", "ipc"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const exited = once(child, "exit");
  child.disconnect();
  expect(await exited).toEqual([0, null]);
});

/** Runs the command with options that it rejects. */
function refused(path: string, address = "0") {
  return runCommand(["report", path, "--serve", address]);
}

it("rejects an invalid folder, port or host in one line", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  await writeFile(join(root, "file"), "");
  expect(await refused(join(root, "nowhere"))).toMatchObject({
    code: 1,
    out: "",
    err: `[periodic-eval] serveResults options.root: got "${join(root, "nowhere")}", expected a folder that contains runs. Check the path.`,
  });
  expect((await refused(join(root, "file"))).err).toContain("expected a folder that contains runs");
  expect((await refused(root, String(port))).err).toBe(
    `[periodic-eval] --serve: got ${port} (listen EADDRINUSE: address already in use 127.0.0.1:${port}), expected a port that is free, of 1024 or above. Choose another port, or 0 for a free one.`,
  );
  expect((await refused(root, "192.0.2.1:0")).err).toContain("--serve: got 192.0.2.1 (listen EADDRNOTAVAIL");
  expect(await refused(root, "http")).toMatchObject({ code: 2, out: "" });
  expect((await refused(root, "65536")).code).toBe(2);
  other.close();
});

it("serves only to requests with the token of PERIODIC_EVAL_TOKEN", async () => {
  const child = spawn(process.execPath, [builtMain(), "report", root, "--serve", "0"], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, PERIODIC_EVAL_TOKEN: "of-the-test" },
  });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const address = String(line).trim();
  const statusWith = async (headers: Record<string, string>) => (await fetch(address, { headers })).status;
  expect(await statusWith({})).toBe(401);
  expect(await statusWith({ authorization: "Bearer other" })).toBe(401);
  expect(await statusWith({ authorization: "Bearer of-the-test" })).toBe(200);
  child.kill("SIGINT");
  expect(await once(child, "close")).toEqual([0, null]);
  vi.stubEnv("PERIODIC_EVAL_TOKEN", "");
  onTestFinished(() => void vi.unstubAllEnvs());
  expect((await refused(root)).err).toContain('PERIODIC_EVAL_TOKEN: got "", expected a non-empty string');
});
