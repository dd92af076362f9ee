import type { AnswerRow, AnswersData, MeasurementAnswers } from "../../page-data/answers-data.ts";

/** The rows of a measurement that were read so far. */
export interface ReadAnswers {
  readonly rows: readonly AnswerRow[];
  /** Number of stored rows that were read, and of all. */
  readonly read: number;
  readonly total: number;
}

/** Reads the answers of measurements, from the page or from its server. */
export interface AnswersSource {
  measurements(): Promise<readonly MeasurementAnswers[]>;
  /** @throws Error if the rows are left out or cannot be read. The message is for people. */
  rows(measurement: MeasurementAnswers, limit: number): Promise<ReadAnswers>;
  /** Replaces the block's data after the page was updated. Rows of unchanged measurements stay in memory. */
  replace(data: AnswersData): void;
}

/** Rows per request to the server. */
const rowsPerRequest = 500;
/** Measurements whose rows stay in memory. */
const keptMeasurements = 32;

export function answersSource(initial: AnswersData): AnswersSource {
  const kept = new Map<string, Promise<ReadAnswers>>();
  let data = initial;
  let list: Promise<readonly MeasurementAnswers[]> | null = null;
  return {
    measurements() {
      if (data.address === null || data.measurements.length > 0) return Promise.resolve(data.measurements);
      return (list ??= request(data.address).then(({ measurements }) => measurements));
    },
    rows(measurement, limit) {
      const { phase, id, step, total } = measurement;
      const key = JSON.stringify([phase, id, step, total, limit]);
      const found = kept.get(key) ?? readRows(data, measurement, limit);
      kept.delete(key);
      kept.set(key, found);
      found.catch(() => kept.delete(key));
      if (kept.size > keptMeasurements) kept.delete(kept.keys().next().value!);
      return found;
    },
    replace(next) {
      data = next;
      list = null;
    },
  };
}

async function readRows(
  { address, command }: AnswersData,
  { phase, id, step, total, rows, packed, problem }: MeasurementAnswers,
  limit: number,
): Promise<ReadAnswers> {
  if (problem !== null) throw new Error(`These answers cannot be shown: ${problem}`);
  if (rows !== null) return { rows, read: total, total };
  if (packed !== undefined) return { rows: await unpack(packed), read: total, total };
  if (address === null)
    throw new Error(`This file leaves out these answers. This command shows them: ${command ?? ""}`);
  const all: AnswerRow[] = [];
  let read = 0;
  let known = total;
  while (read < Math.min(known, limit)) {
    const range = { phase, id, step: String(step), first: String(read), count: String(rowsPerRequest) };
    const { measurements } = await request(`${address}&${new URLSearchParams(range).toString()}`);
    const one = measurements[0];
    if (one === undefined) throw new Error("The server has no such measurement. Load the page again.");
    if (one.problem !== null) throw new Error(`These answers cannot be shown: ${one.problem}`);
    all.push(...(one.rows ?? []));
    known = one.total;
    read = Math.min(read + rowsPerRequest, known);
  }
  return { rows: all, read, total: known };
}

async function request(address: string): Promise<AnswersData> {
  const reply = await fetch(address, { headers: { Accept: "application/json" } });
  if (!reply.ok) throw new Error(`The server replied ${reply.status}. Load the page again.`);
  return (await reply.json()) as AnswersData;
}

async function unpack(packed: string): Promise<readonly AnswerRow[]> {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as readonly AnswerRow[];
}
