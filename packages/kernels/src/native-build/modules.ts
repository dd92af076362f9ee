import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { configError } from "@periodic-eval/contracts/options";
import { makeFolder, makeStep, runTool, type Report } from "./machine.ts";

/** The version of TensorFlow.js: of the backend, and of its core in @periodic-eval/models. */
export const tfjsVersion = "4.22.0";

/** A backend: the package name without its scope. */
export type BackendName = "tfjs-node" | "tfjs-node-gpu";

export const packageOf = (backend: BackendName): string => `@tensorflow/${backend}`;

/** The parts of TensorFlow.js that register kernels: a second copy of them would have its own tensors. */
const shared = ["tfjs-core", "tfjs-backend-cpu"];

/** The folders of the cache that hold a backend, and TensorFlow.js for projects without it. */
export const backendFolder = (backend: BackendName): string => `${backend}-${tfjsVersion}`;
export const tfjsFolder = `tfjs-${tfjsVersion}`;

/**
 * Downloads a backend's JavaScript and what it imports, except TensorFlow.js, into a folder of the cache.
 *
 * @returns The folder that holds `node_modules`.
 */
export function fetchBackend(backend: BackendName, cache: string, report: Report): string {
  const folder = join(cache, backendFolder(backend));
  const what = `${packageOf(backend)}@${tfjsVersion} from npm`;
  makeStep(report, { what, folder }, (draft) => {
    npm(["pack", `${packageOf(backend)}@${tfjsVersion}`, "--silent", "--pack-destination", draft]);
    const tarball = readdirSync(draft).find((name) => name.endsWith(".tgz"))!;
    runTool("tar", ["-xzf", join(draft, tarball), "-C", draft], (got) => tarFailure(tarball, got));
    rmSync(join(draft, tarball));
    const manifest = JSON.parse(readFileSync(join(draft, "package", "package.json"), "utf8")) as {
      readonly dependencies: Readonly<Record<string, string>>;
    };
    const { "@tensorflow/tfjs": _, ...dependencies } = manifest.dependencies;
    install({ ...dependencies, "node-api-headers": "1.9.0" }, draft);
    const scope = join(draft, "node_modules", "@tensorflow");
    mkdirSync(scope, { recursive: true });
    renameSync(join(draft, "package"), join(scope, backend));
  });
  return folder;
}

/** Downloads TensorFlow.js without the parts that @periodic-eval/models has, for projects that do not depend on it. */
function fetchTensorFlowJs(cache: string, report: Report): string {
  const folder = join(cache, tfjsFolder);
  makeStep(report, { what: `@tensorflow/tfjs@${tfjsVersion} from npm`, folder }, (draft) => {
    install({ "@tensorflow/tfjs": tfjsVersion }, draft);
    const modules = join(draft, "node_modules");
    for (const name of shared) rmSync(join(modules, "@tensorflow", name), { recursive: true });
    // Two thirds of its bytes.
    for (const path of readdirSync(modules, { recursive: true, encoding: "utf8" }))
      if (path.endsWith(".js.map")) rmSync(join(modules, path));
  });
  return folder;
}

function install(dependencies: Readonly<Record<string, string>>, folder: string): void {
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, dependencies }));
  npm(["install", "--prefix", folder, "--ignore-scripts", "--no-package-lock"]);
}

function npm(args: readonly string[]): void {
  // `npx` sets variables that make npm act on the project instead of the folder.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOfProject(name)));
  runTool(
    "npm",
    [...args, "--no-audit", "--no-fund", "--loglevel=error"],
    (got) => npmFailure(`npm ${args[0]!}`, got),
    { env },
  );
}

const isOfProject = (name: string): boolean =>
  /^npm_(?:config_(?:local_prefix|prefix|global|workspace|workspaces|package)|package_|lifecycle_)/i.test(
    name,
  );

const npmFailure = (where: string, got: string) =>
  configError({
    where,
    got,
    expected: "a package from the npm registry",
    fix: "Check the network and `npm config get registry`, then run the command again.",
  });

const tarFailure = (tarball: string, got: string) =>
  configError({
    where: `tar -xzf ${tarball}`,
    got,
    expected: "an unpacked package",
    fix: "Install tar and gzip (Debian: `apt-get install tar gzip`), check the free disk space, then run the command again.",
  });

/**
 * Copies a backend from the cache into the folder from which `useBackend` loads it. It shares the project's TensorFlow.js, so its
 * files must be inside the project.
 *
 * @param folder `nativeBackendFolder()` of @periodic-eval/models.
 * @returns The placed package.
 */
export function placeBackend(
  {
    backend,
    built,
    folder,
  }: { readonly backend: BackendName; readonly built: string; readonly folder: string },
  cache: string,
  report: Report,
): string {
  const target = join(folder, backend);
  makeFolder(target, (draft) => {
    const copy = (from: string) =>
      cpSync(join(from, "node_modules"), join(draft, "node_modules"), {
        recursive: true,
        verbatimSymlinks: true,
      });
    copy(built);
    if (!hasTensorFlowJs(folder)) copy(fetchTensorFlowJs(cache, report));
  });
  return join(target, "node_modules", packageOf(backend));
}

/** Whether modules in a folder can import the whole of TensorFlow.js, in the right version. */
function hasTensorFlowJs(folder: string): boolean {
  try {
    const path = createRequire(join(folder, "backend.js")).resolve("@tensorflow/tfjs/package.json");
    const { version } = JSON.parse(readFileSync(path, "utf8")) as { readonly version: string };
    // Its packages may be nested in its `node_modules`, with a second copy of tfjs-core.
    return version === tfjsVersion && !existsSync(join(dirname(path), "node_modules", "@tensorflow"));
  } catch {
    return false;
  }
}
