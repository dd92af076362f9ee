import { afterEach, expect, it, vi } from "vitest";
import type { AnswerRow, AnswersData, MeasurementAnswers } from "../../page-data/answers-data.ts";
import { answersSource } from "./source.ts";

afterEach(() => void vi.unstubAllGlobals());

const measurement: MeasurementAnswers = {
  phase: "em & co",
  id: "alignment",
  declared: {},
  example: null,
  evaluation: "alignment",
  step: 20,
  runStep: 20,
  total: 1200,
  first: 0,
  rows: null,
  problem: null,
};
const served: AnswersData = { measurements: [], address: "eval/answers?results_dir=a", command: null };
const row = (at: number) => ({ item: `q${at}` }) as AnswerRow;

/** Serves the rows of one measurement, and notes the requests. */
function serve(total: number): readonly string[] {
  const requests: string[] = [];
  vi.stubGlobal("fetch", async (address: string) => {
    requests.push(address);
    const query = new URLSearchParams(address.split("?")[1]);
    const first = Number(query.get("first"));
    const count = Math.min(Number(query.get("count")), total - first);
    const rows = query.has("step") ? Array.from({ length: count }, (_, at) => row(first + at)) : null;
    return Response.json({ ...served, measurements: [{ ...measurement, total, first, rows }] });
  });
  return requests;
}

it("reads the rows of a served measurement in parts, up to a limit, and keeps them", async () => {
  const requests = serve(1200);
  const source = answersSource(served);
  const [one] = await source.measurements();
  const { rows, read, total, verified } = await source.rows(one!, 600);
  expect([rows.length, read, total, verified]).toEqual([1000, 1000, 1200, null]);
  expect(rows.at(-1)).toEqual(row(999));
  await source.rows(one!, 600);
  expect(requests).toEqual([
    "eval/answers?results_dir=a",
    "eval/answers?results_dir=a&phase=em+%26+co&id=alignment&step=20&first=0&count=500&verify=later",
    "eval/answers?results_dir=a&phase=em+%26+co&id=alignment&step=20&first=500&count=500&verify=later",
  ]);
});

it.each([null, "edited or damaged"])(
  "returns rows before the server has verified them, then requests one row after that (problem %j)",
  async (problem) => {
    const requests: string[] = [];
    vi.stubGlobal("fetch", async (address: string) => {
      requests.push(address);
      const early = { ...measurement, total: 1, rows: [row(0)], isVerified: false };
      const one = address.endsWith("verify=later") ? early : { ...measurement, total: 1, rows: [], problem };
      return Response.json({ ...served, measurements: [one] });
    });
    const source = answersSource(served);
    const { rows, verified } = await source.rows({ ...measurement, total: 1 }, 600);
    expect(rows).toEqual([row(0)]);
    if (problem === null) await verified;
    else await expect(verified).rejects.toThrow(problem);
    expect(requests.at(-1)).toMatch(/&step=20&count=1$/);
    // Damaged rows are requested again, others are kept.
    await source.rows({ ...measurement, total: 1 }, 600);
    expect(requests).toHaveLength(problem === null ? 2 : 4);
  },
);

it("reads a measurement again that has more rows than before", async () => {
  const requests = serve(3);
  const source = answersSource(served);
  await source.rows({ ...measurement, total: 2 }, 600);
  await source.rows({ ...measurement, total: 3 }, 600);
  expect(requests).toHaveLength(2);
});

it("reads again after an error", async () => {
  vi.stubGlobal("fetch", async () => new Response("", { status: 503 }));
  const source = answersSource(served);
  await expect(source.rows(measurement, 600)).rejects.toThrow("503");
  serve(1);
  expect((await source.rows(measurement, 600)).rows).toEqual([row(0)]);
});

it("reads rows that a file leaves out as an error that names the command", async () => {
  const source = answersSource({
    ...served,
    address: null,
    command: "npx periodic-eval report runs/a --serve",
  });
  await expect(source.rows(measurement, 600)).rejects.toThrow("npx periodic-eval report runs/a --serve");
});

it("sends a person's grades with the token of the page's newest data, and keeps them with the row", async () => {
  const sent: RequestInit[] = [];
  vi.stubGlobal("fetch", async (_: string, request: RequestInit) => {
    sent.push(request);
    return Response.json({ ...served, measurements: [measurement] });
  });
  expect(answersSource(served).saveLabel).toBeNull();
  const source = answersSource({ ...served, labelToken: "first" });
  source.replace({ ...served, labelToken: "second" });
  const graded: AnswerRow = { ...row(3), sample: 1 };
  const label = { aligned: 20, coherent: null };
  await source.saveLabel!(measurement, graded, label);
  expect(graded.label).toEqual(label);
  expect(sent).toMatchObject([{ method: "POST", headers: { "X-Label-Token": "second" } }]);
  expect(JSON.parse(sent[0]!.body as string)).toEqual({ question_id: "q3", sample: 1, ...label });
});

it.each([400, 403, 413, 500])(
  "shows the server's reason for a label that it refuses with %d",
  async (status) => {
    const replies = [
      Response.json({ error: "labels.jsonl: disk full" }, { status }),
      new Response("<p>", { status }),
    ];
    vi.stubGlobal("fetch", async () => replies.shift());
    const source = answersSource({ ...served, labelToken: "token" });
    const save = async () => source.saveLabel!(measurement, row(3), { aligned: 20, coherent: null });
    await expect(save()).rejects.toThrow(/^labels\.jsonl: disk full$/);
    await expect(save()).rejects.toThrow(/^The server replied \d{3}\. Load the page again\.$/);
  },
);
