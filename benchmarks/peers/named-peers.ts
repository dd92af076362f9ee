import { spawnSync } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { exportOnnx } from "../../examples/micro-world/export-onnx.ts";
import { oneOf } from "../one-of.ts";
import { openPeer, peersPython, type Peer } from "./peer.ts";

/** A peer with the name that reports give it. */
export interface NamedPeer extends Peer {
  readonly name: string;
}

interface Program {
  readonly name: string;
  readonly script: string;
  /** Returns the file or folder that the program loads, and makes it if it is missing; null if it cannot be made. */
  modelOf(folder: string): Promise<string | null>;
}

const cache = fileURLToPath(new URL("../../.cache/", import.meta.url));
const madeFrom = (folder: string, file: string) => join(cache, "peer-models", basename(folder), file);

/** Writes the GGUF file with the package `gguf`, which `npm run llama` installs for the Python of the peers. */
const ggufOf = (dtype: "float32" | "bfloat16") => async (folder: string) => {
  const file = madeFrom(folder, `${dtype}.gguf`);
  if (existsSync(file)) return file;
  await mkdir(join(file, ".."), { recursive: true });
  const script = fileURLToPath(new URL("write_gguf.py", import.meta.url));
  const { status, stderr, error } = spawnSync(peersPython(), [script, folder, dtype, file], {
    encoding: "utf8",
    env: { PYTHONPATH: join(cache, "llama", "python"), ...process.env },
  });
  if (status === 0) return file;
  console.log(
    `${file}: not written (${error?.message ?? stderr.trim().split("\n").at(-1)}). Run npm run llama.`,
  );
  return null;
};

async function onnxOf(folder: string): Promise<string> {
  const out = madeFrom(folder, "onnx");
  if (!existsSync(join(out, "onnx", "model.onnx"))) await exportOnnx(realpathSync(folder), out);
  return out;
}

const itself = async (folder: string) => folder;

const programs: Readonly<Record<string, Program>> = {
  transformers: { name: "transformers", script: "transformers_generation.py", modelOf: itself },
  harness: { name: "lm-evaluation-harness", script: "lm_eval_scoring.py", modelOf: itself },
  llama: { name: "node-llama-cpp", script: "llama.mjs", modelOf: ggufOf("float32") },
  "llama-bfloat16": {
    name: "node-llama-cpp in bfloat16",
    script: "llama.mjs",
    modelOf: ggufOf("bfloat16"),
  },
  "transformers-js": { name: "transformers.js", script: "transformers-js.mjs", modelOf: onnxOf },
};

/**
 * Starts the peers of a comma-separated list, and leaves out with a message those that are missing.
 *
 * @param folder The model's folder.
 * @param args Further arguments of the scripts.
 */
export async function openPeers(
  names: string,
  folder: string,
  args: readonly string[],
): Promise<NamedPeer[]> {
  const opened: NamedPeer[] = [];
  for (const key of names.split(",").filter(Boolean)) {
    const { name, script, modelOf } = oneOf("--peers", key, programs);
    const model = await modelOf(folder);
    const peer = model === null ? null : await openPeer(script, [model, ...args]);
    if (peer !== null) opened.push({ ...peer, name });
  }
  return opened;
}

/** Returns the names and versions of the peers' libraries, each once. */
export const versionsOf = (peers: readonly NamedPeer[]): readonly string[] => [
  ...new Set(peers.map(({ versions }) => versions)),
];
