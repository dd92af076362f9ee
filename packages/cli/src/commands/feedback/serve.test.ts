import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { recordingTerminal } from "../../terminal/recording-terminal.test-data.ts";
import { runCli } from "../../program.ts";
import { temporaryFolder } from "../../../../core/src/testing/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

const serve = (...args: string[]) => {
  const terminal = recordingTerminal();
  const ended = runCli(["feedback", "serve", "--backend", "wasm", "--port", "0", ...args], terminal);
  return { terminal, ended };
};

describe("periodic-eval feedback serve", () => {
  it("trains for a remote run, keeps the adapter, and stops on Ctrl-C", async () => {
    const root = join(folder, "adapters");
    const { terminal, ended } = serve("--root", root);
    const url = await vi.waitFor(
      () => {
        const [, found] = /service_url=(\S+)$/.exec(terminal.outputs.join("\n")) ?? [];
        if (found === undefined) throw new Error("not up yet");
        return found;
      },
      { timeout: 60_000 },
    );
    expect(terminal.outputs.join("\n")).toContain("micro-world-talkative on tfjs-wasm at http://127.0.0.1:");
    const run = recordingTerminal();
    const few = ["preferences=[identity]", "metrics=[logprob]", "num_steps=1", "batch_size=1", "plots=false"];
    const output = join(folder, "run");
    const args = ["feedback", "--config-name", "micro-world", `service_url=${url}`, ...few];
    expect(await runCli([...args, `output_dir=${output}`, "steps_per_batch=1"], run)).toBe(0);
    expect(run.outputs[0]).toBe(`${url} trains; files go to ${output}`);
    const [adapter] = (await readdir(root)).filter((name) => name.startsWith("eval-identity-"));
    expect(JSON.parse(await readFile(join(root, adapter!, "adapter.json"), "utf8"))).toMatchObject({
      lora_id: adapter,
      training: { learning_rate: 0.001 },
      engine: { model: "micro-world-talkative" },
    });
    expect(await readFile(join(output, "identity", "metadata.json"), "utf8")).toContain(url);
    process.emit("SIGINT");
    expect(await ended).toBe(0);
    await expect(fetch(`${url}/v1/health`)).rejects.toThrow();
  });

  it.each([
    [["num_steps=3"], "an override that the service does not have"],
    [["--host", "0.0.0.0"], "OPENCLAW_GATEWAY_TOKEN"],
  ])("rejects %j", async (args, message) => {
    const { terminal, ended } = serve("--root", join(folder, "none"), ...args);
    expect(await ended).toBe(1);
    expect(terminal.errors.join("\n")).toContain(message);
  });
});
