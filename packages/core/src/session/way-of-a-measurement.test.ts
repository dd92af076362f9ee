import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createViteServer, type Vite } from "vitest/node";
import { expect, it } from "vitest";
import type * as Core from "../index.ts";
import type * as Toy from "../../../testing/src/toy-training.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const source = fileURLToPath(new URL("..", import.meta.url));
const page = new URL("../../../../docs/explanations/measurement.md", import.meta.url);

/** The files that the measurement enters: those whose asynchronous functions are called while none of them runs. */
const entered: string[] = [];
let isRecording = false;
const running = new Map<string, number>();
const way = {
  enter(file: string): void {
    const count = running.get(file) ?? 0;
    running.set(file, count + 1);
    if (isRecording && count === 0) entered.push(file);
  },
  leave(file: string): void {
    running.set(file, running.get(file)! - 1);
  },
};

interface Node {
  readonly type?: string;
  readonly start: number;
  readonly end: number;
  readonly async?: boolean;
  readonly body?: Node;
}

/** Adds calls of `enter` and `leave` to every asynchronous function of core. */
const recorder: Vite.Plugin = {
  name: "recorder",
  enforce: "post",
  transform(code, id) {
    if (!id.startsWith(source)) return null;
    const file = JSON.stringify(id.slice(source.length));
    const edits: { readonly at: number; readonly text: string }[] = [];
    const visit = (node: unknown): void => {
      if (typeof node !== "object" || node === null) return;
      const { type = "", async: isAsync = false, body } = node as Node;
      if (isAsync && body !== undefined && /Function/.test(type)) {
        const isBlock = body.type === "BlockStatement";
        const [open, close] = isBlock ? ["", ""] : ["{", "}"];
        const first = `${open}way.enter(${file});try{${isBlock ? "" : "return "}`;
        edits.push({ at: isBlock ? body.start + 1 : body.start, text: first });
        edits.push({ at: isBlock ? body.end - 1 : body.end, text: `}finally{way.leave(${file})}${close}` });
      }
      Object.values(node).forEach(visit);
    };
    visit(this.parse(code));
    edits.sort((a, b) => b.at - a.at);
    return edits.reduce((text, edit) => text.slice(0, edit.at) + edit.text + text.slice(edit.at), code);
  },
};

it("enters the files of the docs' map in order, and comes back at most 5 times to a file in which no asynchronous function is running", async () => {
  Object.assign(globalThis, { way });
  const conditions = ["@periodic-eval/source", "node"];
  const server = await createViteServer({
    configFile: false,
    logLevel: "error",
    server: { middlewareMode: true, hmr: false, ws: false },
    appType: "custom",
    ssr: { noExternal: [/^@periodic-eval/], resolve: { conditions } },
    plugins: [recorder],
  });
  try {
    const load = (path: string) => server.ssrLoadModule(join(source, path));
    const core = (await load("index.ts")) as typeof Core;
    const { toyEvaluation, toyTraining } = (await load(
      "../../testing/src/toy-training.test-data.ts",
    )) as typeof Toy;
    const toy = toyTraining();
    const stopRecording = { name: "stop", snapshot: () => void (isRecording = false) };
    const callback = new core.PeriodicCallback(toyEvaluation(), { schedule: [core.everyPercent(50)] });
    const run = temporaryFolder();
    await core.withSession(toy.options([callback], { run, loggers: [stopRecording] }), async (session) => {
      for (let step = 1; step <= 5; step++) {
        toy.step();
        isRecording = step === 5;
        await session.stepEnd();
      }
    });
  } finally {
    await server.close();
    Reflect.deleteProperty(globalThis, "way");
  }
  const files = [...new Set(entered)];
  const map = [...(await readFile(page, "utf8")).matchAll(/^\| \d+ \| `([^`]+)` \|/gm)].map(
    ([, file]) => file,
  );
  expect(files).toEqual(map);
  expect(files.length).toBeLessThanOrEqual(20);
  expect(entered.length - files.length).toBeLessThanOrEqual(5);
}, 120_000);
