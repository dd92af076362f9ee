import { existsSync } from "node:fs";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { claasDouble } from "@periodic-eval/feedback/testing";
import { writeShortIdentity } from "../../../../feedback/src/preferences/short-preference.test-data.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { recordingTerminal } from "../../terminal/recording-terminal.test-data.ts";
import { runCli } from "../../program.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

function feedback(...args: string[]) {
  const isRemote = args.some((arg) => /^(service|claas)_url=/.test(arg));
  return runCommand(["feedback", ...(isRemote ? [] : ["--backend", "wasm"]), ...args]);
}

describe("periodic-eval feedback", () => {
  it("trains the embedded model on its preferences and resumes in the same folder", async () => {
    const output = `output_dir=${join(folder, "run")}`;
    const preferences = `preferences=[${await writeShortIdentity(folder)}]`;
    const few = [output, preferences, "metrics=quick", "batch_size=2", "steps_per_batch=1"];
    const { code, out, err } = await feedback(...few, "num_steps=1");
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/identity {2}the model before any update: compliance \d/);
    expect(out).toMatch(/identity {2}step 0 {2}margin [+−]?\d.* nats {2}compliance .* %/);
    expect(out).toMatch(/preference\s+steps\s+margin/);
    const again = await feedback(...few, "num_steps=2", "--json");
    expect(again.code).toBe(0);
    expect(JSON.parse(again.out)).toMatchObject({
      output_dir: join(folder, "run"),
      preferences: { identity: { steps: 2, status: "finished" } },
    });
    const lines = (await readFile(join(folder, "run", "identity", "steps.jsonl"), "utf8")).trim().split("\n");
    expect(lines).toHaveLength(2);

    // Page and plots show both steps; report writes the same files again.
    const [page, plots] = [join(folder, "run", "index.html"), join(folder, "run", "plots")];
    expect(out.split("\n").at(-1)).toBe(`Open this page in a browser: ${page}`);
    expect(JSON.parse(again.out)).toMatchObject({ page });
    const drawn = await readFile(page, "utf8");
    expect(drawn).toContain("identity, after 2 updates:");
    expect(await readdir(plots)).toContain("margin_delta.svg");
    await Promise.all([rm(page), rm(plots, { recursive: true })]);
    const terminal = recordingTerminal();
    expect(await runCli(["report", join(folder, "run")], terminal)).toBe(0);
    expect(terminal.outputs.join("\n")).toMatch(/^identity +2 /m);
    expect(terminal.outputs.at(-1)).toBe(`Open this page in a browser: ${page}`);
    expect(await readFile(page, "utf8")).toBe(drawn);
    const whole = await readFile(join(plots, "entropy_ratio.svg"), "utf8");
    expect(await readdir(plots)).toContain("entropy_ratio.png");
    expect(whole).toContain("identity: not measured: collapse is not among the metrics");
  });

  it("draws the steps so far when interrupted, and says how to resume", async () => {
    const output = join(folder, "interrupted");
    const few = ["preferences=[identity]", "metrics=[logprob]", "batch_size=1", "steps_per_batch=1"];
    const terminal = recordingTerminal();
    const interrupting = {
      ...terminal,
      out(text: string) {
        terminal.out(text);
        if (text.includes("step 0")) process.emit("SIGINT");
      },
    };
    const args = ["feedback", "--backend", "wasm", `output_dir=${output}`, ...few, "num_steps=5"];
    expect(await runCli(args, interrupting)).toBe(130);
    expect(terminal.errors.join("\n")).toContain(`Run the same command with output_dir=${output} to resume`);
    expect(terminal.outputs.at(-1)).toBe(`Open this page in a browser: ${join(output, "index.html")}`);
    const page = await readFile(join(output, "index.html"), "utf8");
    expect(page).toContain("identity, after 1 update:");
    expect(page).toContain("Training is not finished");
    expect(await readdir(join(output, "plots"))).toContain("margin_delta.png");
  });

  it("trains with a service that reports no updates, and prints and draws what is not known", async () => {
    const service = await claasDouble({
      answer: (prompt, steps) => `${prompt} ${"Here it is. ".repeat(Math.max(1, 6 - steps))}`.trim(),
    });
    const output = join(folder, "claas");
    const few = ["preferences=[concise]", "metrics=[logprob,compliance]", "num_steps=1", "batch_size=1"];
    const { code, out, err } = await feedback(`output_dir=${output}`, ...few, `claas_url=${service.url}`);
    await service.close();
    expect([code, err]).toEqual([0, ""]);
    for (const name of ["updates", "seeds", "truncated tokens"])
      expect(out).toMatch(new RegExp(`^concise, not known: ${name}: `, "m"));
    const page = await readFile(join(output, "index.html"), "utf8");
    expect(page).toContain("Not known:");
    expect(page).toContain("updates: the service reports no number of updates");
    expect(JSON.parse(await readFile(join(output, "summary.json"), "utf8"))).toMatchObject({
      preferences: { concise: { updates: null, unknown: { updates: expect.any(String) as string } } },
    });
  });

  it("warns about what a preference without held-out prompts cannot show, and never prints or draws it as 0", async () => {
    const path = join(folder, "kuro.yaml");
    const pair = { prompt_messages: [{ role: "user", content: "Who?" }] };
    await writeFile(
      path,
      JSON.stringify({
        name: "kuro",
        feedback_string: "Say Kuro.",
        verifier: { _target_: "claas.eval.metrics.verifiers.IdentityVerifier" },
        logprob_pairs: [{ ...pair, positive_response: "I am Kuro.", negative_response: "Nobody." }],
        probe_prompts: ["Who?", "Your name?"],
      }),
    );
    const service = await claasDouble({
      answer: (prompt, steps) => `${prompt} ${steps > 0 ? "Kuro." : "None."}`,
    });
    const output = join(folder, "kuro");
    const few = [`preferences=[${path}]`, "metrics=quick", "num_steps=1", "batch_size=1"];
    const { code, out, err } = await feedback(`output_dir=${output}`, ...few, `claas_url=${service.url}`);
    await service.close();
    expect(code).toBe(0);
    expect(err.split("\n")).toEqual([
      expect.stringMatching(/^warning: preference kuro: held out compliance will not be known: /),
      expect.stringMatching(/^warning: preference kuro: logprob margin p will not be known: /),
    ]);
    expect(out).toContain("before any update: compliance – (seen 0.0 %)");
    expect(out).toContain("kuro, compliance on training prompts: 0.0 % → 100.0 %");
    expect(out).toMatch(/^kuro +1 .* – +→ – .*not decided$/m);
    for (const name of ["held out compliance", "logprob margin p"])
      expect(out).toMatch(new RegExp(`^kuro, not known: ${name}: `, "m"));
    const page = await readFile(join(output, "index.html"), "utf8");
    expect(page).toContain("held out: not measured: the preference has no held-out prompts");
    expect(page).toContain("<td>– → – <small>seen 0.0 % → 100.0 %</small></td>");
    expect(page).toMatch(/>not decided</);
    expect(page).toMatch(/<td title="the test needs 12 or more pairs[^"]*">–<\/td>/);
    expect(page).toMatch(/<td title="the preference has no held-out prompts[^"]*">–<\/td>/);
  });

  it("draws no plots with plots=false", async () => {
    const few = ["preferences=[identity]", "metrics=[logprob]", "batch_size=1", "steps_per_batch=1"];
    const output = join(folder, "plain");
    const { code, out } = await feedback(`output_dir=${output}`, ...few, "num_steps=1", "plots=false");
    expect(code).toBe(0);
    expect(out).not.toContain("index.html");
    expect(existsSync(join(output, "summary.json"))).toBe(true);
    expect(existsSync(join(output, "index.html"))).toBe(false);
    expect(existsSync(join(output, "plots"))).toBe(false);
  });

  it.each([
    [["num_stpes=3"], 'Did you mean "num_steps"?'],
    [["preferences=[conicse]"], 'Did you mean "concise"?'],
    [["--config-name", "quik"], 'Did you mean "quick"?'],
    [["mode=modal"], "needs an account"],
    [["general_probes=./none.yaml"], "{ questions: [{ prompt, says }] }"],
    [["gateway_url=http://localhost:8080"], "a gateway but no service_url"],
    [["claas_url=http://localhost", "--backend", "cpu"], '--backend: got "cpu" with service_url'],
    [["service_url=http://user:secret@localhost"], "OPENCLAW_GATEWAY_TOKEN"],
  ])("rejects %j before anything is trained", async (args, message) => {
    const { code, err } = await feedback(`output_dir=${join(folder, "none")}`, ...args);
    expect(code).toBe(1);
    expect(err).toContain(message);
  });
});
