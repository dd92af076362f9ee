import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Json } from "@periodic-eval/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { attacks } from "../html/attacks.test-data.ts";
import { hasBrowser, withPages } from "../html/browser.test-data.ts";
import { writeSampleFeedback } from "../feedback/sample-feedback.test-data.ts";
import { sampleResults } from "../results/sample-results.test-data.ts";
import { writeSampleRun } from "../run/sample-run.test-data.ts";
import { readResults } from "./sample-root.test-data.ts";
import { clientScript } from "../html/document.ts";
import { serveResults, type Serving } from "./serve-results.ts";
import { lockText } from "../../../testing/src/lock-file.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const attack = attacks.join("\n");

/** Fields that identify a file or that a schema restricts to certain values. */
const kept = new Set([
  ..."schema_version status id phase state evaluation primary_metric on test verdict estimand unit part created_at".split(
    " ",
  ),
  ..."timestamp started_at updated_at collapse_alerts alerts file run collapse_steps metrics".split(" "),
]);

/** Replaces all unrestricted strings and keys of a value with attacks. */
function hostile(value: Json, key = ""): Json {
  if (typeof value === "string") return kept.has(key) ? value : attack;
  if (Array.isArray(value)) return value.map((one: Json) => hostile(one, key));
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([name, inner]): [string, Json] => [name, hostile(inner, name)]);
  const more: [string, Json][] = ["failures", "unknown"].includes(key) ? [[attack, attack]] : [];
  return Object.fromEntries([...fields, ...more]);
}

async function rewrite(file: string, change: (value: Json) => Json = hostile): Promise<void> {
  const lines = (await readFile(file, "utf8")).split("\n");
  const isLines = file.endsWith(".jsonl");
  const text = isLines
    ? lines
        .map((line) => (line.endsWith("}") ? JSON.stringify(change(JSON.parse(line) as Json)) : line))
        .join("\n")
    : JSON.stringify(change(JSON.parse(lines.join("\n")) as Json));
  await writeFile(file, text);
}

/** A hostile string that is a valid folder name. */
const folderName = `"><img src=x onerror=alert(33)>&lt;b&gt; ?#%22 'javascript:alert(34)'`;

async function writeHostileRoot(root: string): Promise<void> {
  const at = (...names: string[]) => join(root, folderName, ...names);
  await writeSampleRun(at("run"), (snapshot) => {
    const changed = hostile(snapshot as unknown as Json) as unknown as typeof snapshot;
    const { accuracy, ...others } = changed.metrics;
    return {
      ...changed,
      metrics: {
        accuracy: { ...accuracy!, unit: attack },
        [attack]: accuracy!,
        [`a/${attack}`]: accuracy!,
        ...others,
      },
      status: snapshot.step === 24 ? "failed" : "partial",
      crossed: ["end"],
    };
  });
  const rows = attacks.map((text, at) =>
    JSON.stringify({ id: `${at}`, text, question: text, persona: text, score: text }),
  );
  const file = at("run", "periodic_eval", "em", "capability_step_60");
  await writeFile(`${file}.samples.jsonl`, `${rows.join("\n")}\n`);
  await rewrite(`${file}.json`, (value) => ({
    ...(value as object),
    samples: { file: attack, rows: rows.length },
  }));
  await writeFile(at("run", "periodic_eval", "em", "torn_step_1.json"), attack);
  await writeFile(at("run", "periodic_eval", ".lock"), lockText({ host: attack, system: "elsewhere" }));
  await writeSampleFeedback(at("feedback"));
  const { preferences } = JSON.parse(await readFile(at("feedback", "summary.json"), "utf8")) as {
    readonly preferences: Record<string, Json>;
  };
  for (const name of Object.keys(preferences))
    for (const of of ["metadata.json", "baseline.json", "steps.jsonl"])
      await rewrite(at("feedback", name, of));
  await rewrite(at("feedback", "summary.json"), (value) => {
    const text = hostile(value) as { readonly preferences: Record<string, { verdict: Json }> };
    for (const one of Object.values(text.preferences)) one.verdict = attack;
    return text;
  });
  await writeSampleFeedback(at("damaged"));
  await writeFile(at("damaged", "summary.json"), JSON.stringify({ schema_version: attack }));
  await mkdir(at("results"));
  const runs = sampleResults.map((run) => {
    const text = {
      name: attack,
      method: attack,
      model: attack,
      adapter: attack,
      config_hash: attack,
      config_path: attack,
    };
    return {
      ...run,
      ...text,
      run_hash: attack,
      timestamp: attack,
      metrics: { ...run.metrics, [`mmlu_${attack}/a,b`]: 0.5 },
    };
  });
  await writeFile(at("results", "metrics.json"), JSON.stringify({ schema_version: 1, runs }));
}

const root = temporaryFolder(afterAll);
let serving: Serving;
beforeAll(async () => {
  await writeHostileRoot(root);
  serving = await serveResults({ root, port: 0, readResults });
});
afterAll(async () => {
  await serving.close();
});

const addresses = (): readonly string[] => {
  const of = (path: string) =>
    `${serving.address}?results_dir=${encodeURIComponent(path).replaceAll("'", "%27")}`;
  return [
    serving.address,
    ...["run", "feedback", "damaged", "results"].map((name) => of(`${folderName}/${name}`)),
    of(attack),
  ];
};

describe("hostile strings in all files of runs", () => {
  const pages = withPages(async () => serving.address);

  it("appear in the pages as plain text", async () => {
    for (const address of addresses().slice(0, -1)) {
      const whole = await (await fetch(address)).text();
      const markup = whole
        .replace(`<script>${clientScript()}</script>`, "")
        .replaceAll(
          /<script type="application\/json" id="(live|run-data|answers-data)">[^<]*<\/script>/g,
          "",
        );
      const tags = [...markup.matchAll(/<\/?([a-z][\w:-]*)/gi)].map(([, name]) => name!.toLowerCase());
      for (const name of [
        "script",
        "img",
        "iframe",
        "base",
        "form",
        "object",
        "embed",
        "link",
        "animate",
        "math",
        "video",
      ])
        expect([address, tags.filter((tag) => tag === name)]).toEqual([address, []]);
      if (!address.includes("damaged")) expect(markup.split("marked = 1").length).toBeGreaterThan(3);
    }
  });

  it.skipIf(!hasBrowser)(
    "run no script and send no request, whatever the reader opens, hovers or presses",
    async () => {
      for (const address of addresses()) {
        const { tab, requests, messages } = await pages.open("about:blank", {
          viewport: { width: 900, height: 900 },
          colorScheme: "light",
        });
        const dialogs: string[] = [];
        tab.on("dialog", (dialog) => {
          dialogs.push(dialog.message());
          void dialog.dismiss();
        });
        await tab.goto(address);
        // Unfold everything and move the keyboard focus through the page.
        for (const summary of await tab.locator("summary").all())
          if (await summary.isVisible()) await summary.press("Enter");
        for (const titled of (await tab.locator("[title], svg circle").all()).slice(0, 12))
          if (await titled.isVisible()) await titled.hover({ force: true });
        for (let at = 0; at < 12; at++) await tab.keyboard.press("Tab");
        expect(await tab.evaluate("typeof window.marked")).toBe("undefined");
        expect(
          await tab.evaluate(
            "document.querySelectorAll('main script, footer script, svg script, script[src], img, iframe, object, embed, form, base, link, [onload], [onerror], [onfocus]').length",
          ),
        ).toBe(0);
        expect(
          await tab.evaluate(
            "[...document.querySelectorAll('a')].every(({ protocol, host }) => protocol === 'http:' && host === location.host)",
          ),
        ).toBe(true);
        expect(dialogs).toEqual([]);
        // The page's own script and at most three blocks of data.
        expect(await tab.evaluate("document.querySelectorAll('script:not([type])').length")).toBeLessThan(2);
        expect(await tab.evaluate("document.scripts.length")).toBeLessThan(5);
        const isOfPage = (url: string) =>
          url !== "about:blank" && !url.startsWith(`${serving.address}/version?`);
        expect(requests.filter(isOfPage)).toEqual([address]);
        // The browser itself logs a 404.
        expect(messages.filter((one) => !/status of 404/.test(one))).toEqual([]);
        await tab.close();
      }
    },
  );

  it.skipIf(!hasBrowser)("are blocked by the policy even without escaping", async () => {
    const policy = (await fetch(serving.address)).headers.get("Content-Security-Policy")!;
    // A policy does not restrict navigation.
    const body = `<!doctype html><body>${attacks.filter((text) => !text.includes("refresh")).join("</style>\n")}`;
    const viewport = { width: 900, height: 900 };
    const { tab } = await pages.open("about:blank", { viewport, colorScheme: "light" });
    const dialogs: string[] = [];
    tab.on("dialog", (dialog) => {
      dialogs.push(dialog.message());
      void dialog.dismiss();
    });
    const headers = { "Content-Type": "text/html", "Content-Security-Policy": policy };
    // Requests that the policy blocks do not reach this handler.
    const sent: string[] = [];
    await tab.route("**", (route) => {
      if (route.request().url() === "http://page.invalid/") return route.fulfill({ headers, body });
      sent.push(route.request().url());
      return route.abort();
    });
    await tab.goto("http://page.invalid/");
    expect(
      await tab.evaluate("document.querySelectorAll('script, img, iframe, [onload]').length"),
    ).toBeGreaterThan(9);
    for (let at = 0; at < 12; at++) await tab.keyboard.press("Tab");
    expect(await tab.evaluate("typeof window.marked")).toBe("undefined");
    expect(dialogs).toEqual([]);
    expect(sent).toEqual([]);
    await tab.close();
  });

  it.skipIf(!hasBrowser)("run without escaping and without the policy, so the attacks are real", async () => {
    const file = join(root, "let-in.html");
    await writeFile(file, `<!doctype html><body>${attacks.join("</style>\n")}`);
    const { tab, requests } = await pages.open("about:blank", {
      viewport: { width: 900, height: 900 },
      colorScheme: "light",
    });
    let dialogs = 0;
    tab.on("dialog", (dialog) => {
      dialogs++;
      void dialog.dismiss();
    });
    await tab.goto(`file://${file}`, { waitUntil: "commit" });
    await expect.poll(() => dialogs, { timeout: 60_000 }).toBeGreaterThan(3);
    expect(requests.length).toBeGreaterThan(3);
    await tab.close();
  });
});
