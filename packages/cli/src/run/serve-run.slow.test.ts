import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { microWorld } from "../demo/micro-world.ts";
import { builtMain } from "../terminal/built-main.test-data.ts";

const folder = temporaryFolder(afterAll);

/** Starts a training that is served, and returns its process. */
function startTraining(name: string, port: string, steps = 3) {
  const path = join(folder, `${name}.json`);
  const training = {
    model: microWorld(),
    run_dir: join(folder, name),
    phases: [{ phase: "train", dataset: microWorld("em.jsonl"), config: { maxSteps: steps, batchSize: 2 } }],
    periodic_eval: { questions: microWorld("questions.jsonl"), subsample_n: 4 },
  };
  writeFileSync(path, JSON.stringify(training));
  const args = [builtMain(), "train", path, "--backend", "wasm", "--serve", port];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "close");
  const lines = { out: "", err: "" };
  child.stdout.on("data", (text: Buffer) => (lines.out += text.toString()));
  child.stderr.on("data", (text: Buffer) => (lines.err += text.toString()));
  return { child, ended, lines };
}

it("serves a training from its first second, and stops with it", async () => {
  const { ended, lines } = startTraining("live", "0", 60);
  await expect.poll(() => lines.out, { timeout: 60_000 }).toContain("Live page, while this command runs: ");
  const address = /http:\S+/.exec(lines.out)![0];
  const page = await fetch(address);
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("</html>")]);
  const stateOf = async () => {
    const reply = await fetch(address, { headers: { Accept: "application/json" } });
    return ((await reply.json()) as { readonly state?: string }).state ?? "no run yet";
  };
  await expect.poll(stateOf, { timeout: 60_000, interval: 20 }).toBe("running");
  expect((await ended)[0]).toBe(0);
  await expect(fetch(address)).rejects.toThrow();
}, 180_000);

it("trains without a live page if the port is taken", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  const { ended, lines } = startTraining("taken", String(port));
  expect((await ended)[0]).toBe(0);
  expect(lines.err).toContain(`The run is not served: [periodic-eval] --serve: got ${port}`);
  expect(existsSync(join(folder, "taken", "periodic_eval", "index.html"))).toBe(true);
  other.close();
}, 180_000);

it("stops serving when the command is killed", async () => {
  const { child, ended, lines } = startTraining("killed", "0");
  await expect.poll(() => lines.out, { timeout: 60_000 }).toContain("Live page");
  const address = /http:\S+/.exec(lines.out)![0];
  child.kill("SIGKILL");
  await ended;
  const isServed = () =>
    fetch(address).then(
      () => true,
      () => false,
    );
  await expect.poll(isServed, { timeout: 5000 }).toBe(false);
}, 180_000);
