// Builds the optional engine tfjs-node: native TensorFlow on machines that cannot reach the download of tfjs-node's own installer.
// Its JavaScript comes from npm, libtensorflow from a TensorFlow wheel on PyPI, and the binding between the two is compiled
// here. Everything is in .cache/native; node_modules gets one link, which `npm ci` and `npm install` remove and a second run
// restores. No dependencies.
// Usage: npm run native [-- --libtensorflow FOLDER] [--force]
//   --libtensorflow (or LIBTENSORFLOW) names an existing libtensorflow: the folder of an installed Python package tensorflow, or
//   an unpacked libtensorflow archive. --force rebuilds everything.
import { spawnSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import {
  checkInstalled,
  installedModules,
  link,
  makeFolder,
  Missing,
  npm,
  root,
  run,
  runToEnd,
  step,
} from "./optional-engine.mjs";

const cache = join(root, ".cache", "native");
const modules = join(cache, "node_modules");
const tfjsNode = join(modules, "@tensorflow", "tfjs-node");
/** The folder from which imports load it. */
const installed = join(installedModules, "@tensorflow", "tfjs-node");
const binding = join(tfjsNode, "lib", "napi-v8", "tfjs_binding.node");

const version = "4.22.0";
const wheels = {
  x64: { name: "tensorflow-cpu", platform: "x86_64" },
  arm64: { name: "tensorflow-cpu-aws", platform: "aarch64" },
};
/** All specs of TensorFlow.js pass with this version; 2.20 rounds int32 wrongly. */
const wheelVersion = "2.15.1";
/** The wheels for all Python versions hold the same libraries, so any Python can download this one. */
const wheelPython = "3.11";

function checkMachine() {
  if (process.platform !== "linux" || !(process.arch in wheels)) {
    throw new Missing(
      "npm run native",
      `${process.platform} on ${process.arch}`,
      `linux on ${Object.keys(wheels).join(" or ")}`,
      `Try \`npm install --no-save @tensorflow/tfjs-node@${version}\`, which fetches its own library, or use the backend wasm.`,
    );
  }
  checkInstalled();
}

/** Installs the JavaScript of tfjs-node without its own TensorFlow.js: imports find the project's further up. */
function fetchTfjsNode() {
  makeFolder(modules, (made) => {
    const what = `@tensorflow/tfjs-node@${version}`;
    npm(["pack", what, "--silent", "--pack-destination", made], `npm pack ${what}`, "native");
    const [tarball] = readdirSync(made);
    const broken = (got) => new Missing(tarball, got, "a whole archive", "Run `npm run native` again.");
    run("tar", ["-xzf", join(made, tarball), "-C", made], broken);
    const manifest = JSON.parse(readFileSync(join(made, "package", "package.json"), "utf8"));
    const { "@tensorflow/tfjs": _, ...dependencies } = manifest.dependencies;
    writeFileSync(
      join(made, "package.json"),
      JSON.stringify({ private: true, dependencies: { ...dependencies, "node-api-headers": "1.9.0" } }),
    );
    npm(
      ["install", "--prefix", made, "--ignore-scripts", "--no-package-lock"],
      `the dependencies of ${what}`,
      "native",
    );
    mkdirSync(join(made, "node_modules", "@tensorflow"), { recursive: true });
    renameSync(join(made, "package"), join(made, "node_modules", "@tensorflow", "tfjs-node"));
    return join(made, "node_modules");
  });
}

const pipCandidates = [
  ["python3", ["-m", "pip"]],
  ["pip3", []],
  ["python", ["-m", "pip"]],
];

function findPip() {
  const found = pipCandidates.find(
    ([command, args]) => spawnSync(command, [...args, "--version"]).status === 0,
  );
  if (found !== undefined) return found;
  throw new Missing(
    "pip",
    "no pip of a Python 3",
    "one that downloads a wheel",
    "Install one (Debian: `apt-get install python3-pip`), or name a libtensorflow with --libtensorflow FOLDER.",
  );
}

/** Extracts the libraries and the C headers from a wheel, which is a zip file; installs and runs nothing. */
const extract = `
import os, shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in wheel.namelist():
        library = name.startswith("tensorflow/libtensorflow_") and name.endswith(".so.2")
        header = name.endswith(".h") and name.startswith(("tensorflow/include/tensorflow/c/", "tensorflow/include/tensorflow/core/platform/", "tensorflow/include/tsl/"))
        if library or header:
            target = os.path.join(sys.argv[2], *(["lib", os.path.basename(name)] if library else name.split("/")[1:]))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with wheel.open(name) as source, open(target, "wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
`;

function fetchLibtensorflow(folder) {
  const [pip, pipArgs] = findPip();
  const { name, platform } = wheels[process.arch];
  const what = `pip download ${name}==${wheelVersion}`;
  const missing = (got) =>
    new Missing(
      what,
      got,
      "a wheel from PyPI",
      "Check the network and pip's index, or name a libtensorflow with --libtensorflow FOLDER.",
    );
  makeFolder(folder, (made) => {
    const download = join(made, "download");
    const platforms = ["manylinux_2_17", "manylinux2014"].flatMap((tag) => [
      "--platform",
      `${tag}_${platform}`,
    ]);
    run(
      pip,
      [
        ...pipArgs,
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
        "--implementation",
        "cp",
        "--python-version",
        wheelPython,
        ...platforms,
        "--dest",
        download,
        `${name}==${wheelVersion}`,
      ],
      missing,
    );
    const wheel = join(download, readdirSync(download)[0]);
    const python = pip === "pip3" ? "python3" : pip;
    run(python, ["-c", extract, wheel, made], missing);
    rmSync(download, { recursive: true });
    return made;
  });
}

/** Returns the libraries and the headers of a folder in either of the two layouts; null if it has neither. */
function readLibtensorflow(folder) {
  const library = (name) => ["lib", "."].map((place) => join(folder, place, name)).find(existsSync);
  const whole = ["libtensorflow_cc.so.2", "libtensorflow.so.2"].map(library).find(Boolean);
  const framework = library("libtensorflow_framework.so.2");
  const include = join(folder, "include");
  const hasHeaders = existsSync(join(include, "tensorflow", "c", "eager", "c_api.h"));
  return whole && framework && hasHeaders ? { libraries: [whole, framework], include } : null;
}

function libtensorflow(named) {
  if (named !== undefined) {
    const found = readLibtensorflow(resolve(named));
    if (found !== null) return found;
    throw new Missing(
      `libtensorflow ${named}`,
      "a folder without them",
      "libtensorflow_cc.so.2 or libtensorflow.so.2, libtensorflow_framework.so.2 and include/tensorflow/c",
      "Name the folder of a Python package tensorflow, or leave it out to fetch a wheel.",
    );
  }
  const folder = join(cache, `libtensorflow-${wheelVersion}`);
  step(`libtensorflow ${wheelVersion}`, readLibtensorflow(folder) !== null, () => fetchLibtensorflow(folder));
  return readLibtensorflow(folder);
}

function nodeHeaders() {
  const places = [
    join(dirname(process.execPath), "..", "include", "node"),
    "/usr/include/node",
    join(modules, "node-api-headers", "include"),
  ];
  const found = places.find((place) => existsSync(join(place, "node_api.h")));
  if (found !== undefined) return found;
  throw new Missing("node_api.h", "none", `one in ${places.join(", ")}`, "Run `npm run native -- --force`.");
}

function findCompiler() {
  const found = [process.env["CXX"], "g++", "c++", "clang++"].find(
    (name) => name && spawnSync(name, ["--version"]).status === 0,
  );
  if (found !== undefined) return found;
  throw new Missing(
    "C++ compiler",
    "neither $CXX nor g++, c++ or clang++",
    "one that knows C++17",
    "Install one (Debian: `apt-get install g++`).",
  );
}

function compile({ libraries, include }) {
  const deps = join(tfjsNode, "deps", "lib");
  rmSync(deps, { recursive: true, force: true });
  mkdirSync(deps, { recursive: true });
  for (const library of libraries) symlinkSync(relative(deps, library), join(deps, basename(library)));
  mkdirSync(dirname(binding), { recursive: true });
  const made = `${binding}.making`;
  const sources = ["tfjs_backend.cc", "tfjs_binding.cc"].map((name) => join(tfjsNode, "binding", name));
  run(
    findCompiler(),
    [
      "-std=c++17",
      "-O2",
      "-fPIC",
      "-shared",
      "-w",
      "-DNAPI_VERSION=8",
      `-I${nodeHeaders()}`,
      `-I${include}`,
      ...sources,
      "-o",
      made,
      `-L${deps}`,
      ...libraries.map((library) => `-l:${basename(library)}`),
      "-Wl,-rpath,$ORIGIN/../../deps/lib",
    ],
    (got) =>
      new Missing(
        "the binding of tfjs-node",
        got,
        "C++ that compiles",
        "Install a newer compiler, or name another libtensorflow.",
      ),
  );
  renameSync(made, binding);
}

/** Loads the engine in a separate process and multiplies two matrices: an incompatible library crashes the process. */
function check() {
  const code = `
    process.env.TF_CPP_MIN_LOG_LEVEL ??= "3";
    const util = require("node:util");
    util.isNullOrUndefined ??= (value) => value === null || value === undefined;
    const tf = require(${JSON.stringify(installed)});
    const product = tf.matMul([[1, 2], [3, 4]], [[5, 6], [7, 8]]).dataSync();
    console.log([tf.getBackend(), tf.backend().binding.TF_Version, ...product].join(" "));`;
  const broken = (got) =>
    new Missing(
      installed,
      got,
      "an engine that multiplies",
      "Run `npm run native -- --force`; where that does not help, use the backend wasm.",
    );
  const said = run(process.execPath, ["-e", code], broken, { cwd: root }).trim().split("\n").at(-1);
  const [backend, tensorflow, ...product] = said.split(" ");
  // [1 2; 3 4] · [5 6; 7 8] = [19 22; 43 50]
  if (backend !== "tensorflow" || product.join(" ") !== "19 22 43 50") throw broken(`"${said}"`);
  console.log(`tfjs-node ${version} on TensorFlow ${tensorflow} works: PERIODIC_EVAL_BACKEND=tfjs-node`);
}

function main() {
  const { values } = parseArgs({
    options: { libtensorflow: { type: "string" }, force: { type: "boolean", default: false } },
  });
  const named = values.libtensorflow ?? (process.env["LIBTENSORFLOW"] || undefined);
  const isOurs = lstatSync(installed, { throwIfNoEntry: false })?.isSymbolicLink() ?? true;
  // A working installation by npm needs nothing else.
  if (!isOurs && !values.force) return check();
  checkMachine();
  if (values.force) rmSync(cache, { recursive: true, force: true });
  mkdirSync(cache, { recursive: true });
  step(`@tensorflow/tfjs-node ${version}`, existsSync(join(tfjsNode, "package.json")), fetchTfjsNode);
  const library = libtensorflow(named);
  // A binding for another library is rebuilt.
  const stamp = join(tfjsNode, "lib", "libtensorflow.txt");
  const isMade =
    existsSync(binding) && existsSync(stamp) && readFileSync(stamp, "utf8") === library.libraries.join("\n");
  step("compiled its binding", isMade, () => {
    compile(library);
    writeFileSync(stamp, library.libraries.join("\n"));
  });
  link(installed, tfjsNode);
  try {
    check();
  } catch (error) {
    // Tests use whatever is installed, so a broken engine must not stay.
    rmSync(installed);
    throw error;
  }
}

runToEnd(main);
