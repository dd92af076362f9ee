// Writes `files/`. Run it only on the commit whose files later commits must read: see README.md.
//
// `write.child.ts until TEXT ARGUMENTS…` runs the command line, and kills itself as soon as that prints TEXT.
import { snapshotJsonSchema } from "@periodic-eval/core/snapshots";
import { spawn } from "node:child_process";
import { cp, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { commands, runCommand, type CommandName } from "./commands.test-data.ts";
import { bytesIn, earlierFiles, earlierRoot } from "./files.test-data.ts";
import { writeInputs } from "./inputs.test-data.ts";
import { mlflowServer } from "./mlflow-server.test-data.ts";
import { outcomes } from "./outcomes.test-data.ts";
import { withoutWords } from "./schemas.test-data.ts";
import {
  resumeAbortedSession,
  resumeKilledSession,
  startAbortedSession,
  startKilledSession,
} from "./sessions.test-data.ts";

const script = fileURLToPath(import.meta.url);
const [role, text, ...args] = process.argv.slice(2);
if (role === "until") await dieAt(text!, args);
else await writeFixtures();

/** Runs a command until it prints a text, and dies without closing anything, as a killed process does. */
async function dieAt(said: string, command: readonly string[]): Promise<void> {
  process.chdir(earlierRoot);
  const end = await runCommand(command, (line) => {
    if (line.includes(said)) process.kill(process.pid, "SIGKILL");
  });
  console.error(end.text);
  process.exitCode = 1;
}

function killedAt(said: string, command: readonly string[]): Promise<void> {
  const node = ["--import", "tsx", "-C", "@periodic-eval/source", script];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...node, "until", said, ...command], {
      // Node finds tsx from here.
      cwd: dirname(script),
      stdio: ["ignore", "ignore", "inherit"],
    });
    child.on("error", reject);
    child.on("close", (_, signal) =>
      signal === "SIGKILL" ? resolve() : reject(new Error(`"${said}" was not printed`)),
    );
  });
}

async function writeFixtures(): Promise<void> {
  const root = earlierRoot;
  // Fails if the folder exists: its files may be somebody's.
  await mkdir(root);
  await writeInputs(join(root, "inputs"));
  process.chdir(root);
  const mlflow = await mlflowServer();
  await measureEarlierRun();
  for (const name of Object.keys(commands) as CommandName[]) {
    const { args: argsOf, killedAt: said } = commands[name];
    const [interrupted, whole] = [`${name}/interrupted`, `${name}/at-work`];
    // The folder of the suite already holds a run.
    if (name === "suite") await cp(interrupted, whole, { recursive: true });
    await killedAt(said, argsOf(interrupted, mlflow.address));
    await run(argsOf(whole, mlflow.address));
    await writeJson(join(root, name, "whole.json"), await outcomes[name](join(root, whole)));
    await rm(whole, { recursive: true });
  }
  await mlflow.close();
  await loseLastLine(join(root, "feedback/interrupted/brief/steps.jsonl"));
  await startKilledSession(root);
  await startAbortedSession(root);
  await keepResumed(join(root, "killed-session"), () => resumeKilledSession(root));
  await keepResumed(join(root, "aborted-session"), () => resumeAbortedSession(root));
  await writeJson(join(root, "snapshot.schema.json"), withoutWords(snapshotJsonSchema()));
  await rm(earlierFiles, { recursive: true, force: true });
  await cp(root, earlierFiles, { recursive: true });
  await rm(root, { recursive: true });
  console.log(`${basename(earlierFiles)}/ is written`);
}

async function run(command: readonly string[]): Promise<void> {
  const { code, text: told } = await runCommand(command);
  if (code !== 0) throw new Error(`${command.join(" ")}: ${told}`);
}

/** Measures a first run of the suite, of which metrics.json is kept. */
async function measureEarlierRun(): Promise<void> {
  const folder = "suite/interrupted";
  await run(commands.suite.args(folder).map((arg) => arg.replace("--name=base", "--name=first")));
  await rm(`${folder}/jobs`, { recursive: true });
}

/** Resumes the run in `interrupted`, moves what that writes to `resumed`, and puts `interrupted` back. */
async function keepResumed(folder: string, resume: () => Promise<void>): Promise<void> {
  const [interrupted, kept] = [join(folder, "interrupted"), join(folder, "kept")];
  await cp(interrupted, kept, { recursive: true });
  await resume();
  const [before, after] = [await bytesIn(kept), await bytesIn(interrupted)];
  for (const [file, bytes] of Object.entries(after)) {
    if (bytes === before[file]) continue;
    const path = join(folder, "resumed", file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, bytes, "latin1");
  }
  await rm(interrupted, { recursive: true });
  await rename(kept, interrupted);
}

/** A crash between the checkpoint of a step and the step's line leaves this. */
async function loseLastLine(path: string): Promise<void> {
  const lines = (await readFile(path, "utf8")).trimEnd().split("\n");
  await writeFile(
    path,
    lines
      .slice(0, -1)
      .map((line) => `${line}\n`)
      .join(""),
  );
}

function writeJson(path: string, value: unknown): Promise<void> {
  return writeFile(path, `${JSON.stringify(value)}\n`);
}
