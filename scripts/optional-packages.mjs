// Installs optional packages of npm into a folder of .cache; node_modules gets links.
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
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
} from "./steps.mjs";

/**
 * Runs an installer with the flag `--force`, which installs everything again.
 *
 * @param script The npm script, which names the folder of .cache too.
 * @param versions Exact versions by name.
 * @param options.prune Removes what is not needed of `node_modules`.
 * @param options.code Tries the packages in a separate process: an incompatible one crashes the process.
 * @param options.otherwise What to do if they do not load.
 * @param options.done Returns the line to print from what `code` printed last.
 */
export const installOptional = (script, versions, { flags = [], prune, code, otherwise, done }) =>
  runToEnd(() => {
    const { values } = parseArgs({ options: { force: { type: "boolean", default: false } } });
    const modules = join(root, ".cache", script, "node_modules");
    const names = Object.keys(versions);
    checkInstalled();
    if (values.force) rmSync(modules, { recursive: true, force: true });
    const fetch = () =>
      makeFolder(modules, (made) => {
        writeFileSync(join(made, "package.json"), JSON.stringify({ private: true, dependencies: versions }));
        const fixed = ["--prefix", made, "--ignore-scripts", "--no-package-lock"];
        npm(["install", ...fixed, ...flags], names.join(" and "), script);
        prune(join(made, "node_modules"));
        return join(made, "node_modules");
      });
    step(names.join(" and "), existsSync(join(modules, names[0], "package.json")), fetch);
    for (const name of names) {
      mkdirSync(dirname(join(installedModules, name)), { recursive: true });
      link(join(installedModules, name), join(modules, name));
    }
    const fix = `Run \`npm run ${script} -- --force\`; ${otherwise}`;
    const broken = (got) => new Missing(join(installedModules, names[0]), got, "a library that loads", fix);
    const said = run(process.execPath, ["--input-type=module", "-e", code], broken, { cwd: root });
    console.log(done(said.trim().split("\n").at(-1)));
  });
