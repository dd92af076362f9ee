import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const program = ".cache/vllm/bin/vllm";

/** Whether `npm run vllm` has installed vLLM. */
export const hasVllm = existsSync(".cache/vllm/installed.txt");

/** Part of the title of a suite that is skipped without vLLM. */
export const needsVllm = "needs .cache/vllm from `npm run vllm`";

/** A vLLM server in a process group of its own. */
export interface VllmServer {
  readonly url: string;
  /** Kills all its processes at once. A killed API process alone would leave its engine. */
  kill(): void;
}

/** The modules of Llama's layers: without the head, which crashes the engine when it scores. */
export const layerModules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

const startSeconds = 600;

/** Starts a server with the model of a folder, under the name `base`, and waits until it is healthy. The caller kills it. */
export async function startVllm(folder: string): Promise<VllmServer> {
  const port = await freePort();
  const logs = mkdtempSync(join(tmpdir(), "vllm-"));
  const log = join(logs, "server.log");
  const place = `--served-model-name base --host 127.0.0.1 --port ${port}`;
  const engine = "--dtype float32 --max-model-len 512 --max-num-seqs 32 --enforce-eager";
  const lora = `--enable-lora --max-lora-rank 8 --max-loras 3 --lora-target-modules ${layerModules.join(" ")}`;
  const settings = ["serve", resolve(folder), ...`${place} ${engine} ${lora}`.split(" ")];
  const env = {
    ...process.env,
    // A killed server leaves its sockets there.
    TMPDIR: logs,
    VLLM_ALLOW_RUNTIME_LORA_UPDATING: "True",
    VLLM_NO_USAGE_STATS: "1",
    DO_NOT_TRACK: "1",
    HF_HUB_OFFLINE: "1",
    VLLM_CPU_KVCACHE_SPACE: "1",
    VLLM_CPU_OMP_THREADS_BIND: "auto",
  };
  // A shell writes the log, so that the servers' processes need no pipe of this one.
  const command = `exec ${program} "$@" > ${log} 2>&1`;
  const child = spawn("sh", ["-c", command, "vllm", ...settings], { env, detached: true, stdio: "ignore" });
  const kill = () => {
    process.off("exit", kill);
    try {
      process.kill(-child.pid!, "SIGKILL");
    } catch {
      // It has ended.
    }
    rmSync(logs, { recursive: true, force: true });
  };
  process.on("exit", kill);
  const url = `http://127.0.0.1:${port}`;
  for (const until = performance.now() + 1000 * startSeconds; performance.now() < until; await sleep(500)) {
    const isHealthy = await fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isHealthy) return { url, kill };
    if (child.exitCode !== null) break;
  }
  const said = readFileSync(log, "utf8").slice(-2000);
  kill();
  throw new Error(`vLLM did not start: ${said}`);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}
