// A registry of npm on the loopback interface: verdaccio, installed into .cache on the first use. It holds the packages that are
// published to it, and fetches all others from the registry that npm is configured for.
import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:net";
import { existsSync, mkdirSync, openSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { installedTool, npmCommand, Missing, installedModules, link, root } from "../steps.mjs";

const system = process.platform === "win32" ? "win" : process.platform;
const present = process.versions.node;

/** Returns the path of a Node that runs tools which need Node 22. Throws a Missing if there is none. */
export function nodeForTools() {
  const path = Number(present.split(".")[0]) >= 22 ? process.execPath : nodeOfVersion("22")?.path;
  if (path !== undefined) return path;
  throw new Missing("npm run release", `Node ${present}`, "Node 22 or newer", "Run it with a newer Node.");
}

/** Returns name and path of a Node of the major version: the present one, or one installed into .cache. Null with a message if there is none. */
export function nodeOfVersion(major) {
  if (present.split(".")[0] === major) return { version: present, path: process.execPath };
  const name = `node-${system}-${process.arch}`;
  try {
    const folder = installedTool(`node-${major}`, { [name]: major }, "release -- --dry-run");
    const path = join(
      folder,
      "node_modules",
      name,
      "bin",
      process.platform === "win32" ? "node.exe" : "node",
    );
    const { stdout } = spawnSync(path, ["--version"], { encoding: "utf8" });
    if (stdout?.startsWith(`v${major}.`)) return { version: stdout.trim().slice(1), path };
    console.log(`not run on Node ${major}: ${name} does not start here`);
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    console.log(`not run on Node ${major}: ${error.message}`);
  }
  return null;
}

const versions = { "@changesets/cli": "3.0.3", "@changesets/changelog-git": "1.0.0" };

/** Runs a command of changesets in the repository. */
export function runChangesets(args) {
  const tool = installedTool("changesets", versions, `release -- --${args[0]}`);
  const own = join(tool, "node_modules", "@changesets");
  // Its configuration names the package that writes the changelogs, which it looks up in the repository.
  link(join(installedModules, "@changesets"), own);
  const { status } = spawnSync(nodeForTools(), [join(own, "cli", "bin.js"), ...args], {
    cwd: root,
    stdio: "inherit",
  });
  if (status !== 0)
    throw new Missing(
      `changeset ${args.join(" ")}`,
      `exit status ${status}`,
      "success",
      "Read its message above.",
    );
}

const version = "6.10.4";
/** verdaccio-audit names node-fetch by the tag `cjs`. A mirror of the registry of npm may lack tags, so it is a version here. */
const overrides = { "node-fetch": "2.6.13" };
const mostSeconds = 60;

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function configuredRegistry() {
  const { stdout } = spawnSync(...npmCommand(["config", "get", "registry"]), { cwd: root, encoding: "utf8" });
  return stdout.trim();
}

const configOf = (storage) => `
storage: ${JSON.stringify(storage)}
uplinks:
  configured: { url: ${JSON.stringify(configuredRegistry())}, maxage: 60m, timeout: 60s, max_fails: 10 }
packages:
  "@periodic-eval/*": { access: $all, publish: $all, unpublish: $all }
  periodic-eval: { access: $all, publish: $all, unpublish: $all }
  "**": { access: $all, proxy: configured }
max_body_size: 100mb
log: { type: stdout, format: pretty, level: warn }
`;

/**
 * Starts the registry with no package of the project in it.
 *
 * @param folder Keeps what it fetched from the other registry, its configuration and its log.
 * @returns `env`, which makes npm use this registry and nothing of the user's configuration, and `stop`.
 * @throws Missing if verdaccio cannot be installed or does not start.
 */
export async function startRegistry(folder) {
  const tool = installedTool("verdaccio", { verdaccio: version }, "release -- --dry-run", { overrides });
  const storage = join(folder, "storage");
  mkdirSync(storage, { recursive: true });
  for (const name of ["@periodic-eval", "periodic-eval", ".verdaccio-db.json"])
    rmSync(join(storage, name), { recursive: true, force: true });
  const [port, config, log] = [await freePort(), join(folder, "config.yaml"), join(folder, "registry.log")];
  writeFileSync(config, configOf(storage));
  const output = openSync(log, "w");
  const command = join(tool, "node_modules", "verdaccio", "bin", "verdaccio");
  const child = spawn(nodeForTools(), [command, "--config", config, "--listen", `127.0.0.1:${port}`], {
    stdio: ["ignore", output, output],
  });
  const url = `http://127.0.0.1:${port}/`;
  const stop = () => child.kill();
  try {
    await untilItAnswers(child, url, log);
  } catch (error) {
    stop();
    throw error;
  }
  const userConfig = join(folder, "npmrc");
  // npm refuses to publish without a token; the registry accepts any.
  writeFileSync(userConfig, `registry=${url}\n//127.0.0.1:${port}/:_authToken=local\n`);
  const env = {
    ...process.env,
    npm_config_userconfig: userConfig,
    npm_config_cache: join(folder, "npm-cache"),
    npm_config_update_notifier: "false",
    NO_PROXY: "127.0.0.1",
  };
  return { url, env, stop };
}

async function untilItAnswers(child, url, log) {
  const failed = (got) =>
    new Missing(
      "verdaccio",
      got,
      "a registry that answers",
      `Read ${log}, then run \`npm run release -- --dry-run\` again.`,
    );
  for (let waited = 0; waited < mostSeconds * 5; waited++) {
    if (child.exitCode !== null) throw failed(`exit status ${child.exitCode}`);
    const answers = await fetch(`${url}-/ping`)
      .then((reply) => reply.ok)
      .catch(() => false);
    if (answers && existsSync(log)) return;
    await sleep(200);
  }
  throw failed(`no answer within ${mostSeconds} s`);
}
