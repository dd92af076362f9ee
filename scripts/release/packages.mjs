// The published packages: packing, publishing, and what installing each of them brings.
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { npmCommand } from "../npm.mjs";
import { Missing, root, run } from "../steps.mjs";

const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
/** Disks store files in blocks of this size. */
const block = 4096;

/** Runs npm in a folder. Throws a Missing with its first error. */
export function npm(args, cwd, env) {
  const failed = (got) =>
    new Missing(`npm ${args.join(" ")}`, got, "success", "Correct the package, then repeat this.");
  return run(...npmCommand([...quiet, ...args]), failed, { cwd, env });
}

/** Returns folder, name and version of every package, in the order in which a person reads them. */
export function publishedPackages() {
  return readdirSync(join(root, "packages"))
    .filter((folder) => existsSync(join(root, "packages", folder, "package.json")))
    .map((folder) => ({
      folder,
      ...JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8")),
    }))
    .filter((manifest) => manifest.private !== true)
    .map(({ folder, name, version }) => ({ folder, name, version }));
}

/** Packs every package and publishes the tarballs to the registry of `env`. Returns each package with its packed bytes. */
export function publishAll(packages, folder, env) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return packages.map((one) => {
    const packed = npm(
      ["pack", "--json", "--pack-destination", folder],
      join(root, "packages", one.folder),
      env,
    );
    const [{ filename, size }] = JSON.parse(packed);
    // Provenance needs the release workflow.
    npm(["publish", join(folder, filename), "--provenance=false", "--tag", "latest"], folder, env);
    return { ...one, packedBytes: size };
  });
}

/** Makes an empty project outside of the repository, so that no import finds the repository's modules. */
export function emptyProject() {
  const project = mkdtempSync(join(tmpdir(), "periodic-eval-release-"));
  writeFileSync(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
  return project;
}

/** Installs a package into an empty project. Returns the number of packages and the size of all files there. */
export function measureInstall({ name }, env) {
  const project = emptyProject();
  try {
    npm(["install", name], project, env);
    const { packages } = JSON.parse(readFileSync(join(project, "package-lock.json"), "utf8"));
    const sizes = filesBelow(join(project, "node_modules"));
    return {
      packages: Object.keys(packages).length - 1,
      bytes: sizes.reduce((sum, size) => sum + size, 0),
      bytesOnDisk: sizes.reduce((sum, size) => sum + Math.ceil(size / block) * block, 0),
    };
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
}

const filesBelow = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => lstatSync(join(entry.parentPath, entry.name)).size);
