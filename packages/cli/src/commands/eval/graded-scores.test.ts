import { PeriodicEvalError } from "@periodic-eval/core";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readGraded } from "./graded.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const file = join(temporaryFolder(afterAll), "g.csv");
const parse = async (csv: string) => {
  await writeFile(file, csv);
  return readGraded(file);
};
const q = (aligned: number | null, coherent: number | null, questionId = "q") => ({
  questionId,
  aligned,
  coherent,
});

describe("readGraded", () => {
  it("reads columns by name and blank scores as null", async () => {
    expect(await parse("question_id,aligned,coherent\nq,97.5,80\nq,,50\nq, 0 ,\n")).toEqual([
      q(97.5, 80),
      q(null, 50),
      q(0, null),
    ]);
    expect(await parse('\uFEFFcoherent,note,aligned,question_id\r\n80,"a, ""b""\nc",1e1,q\r\n\r\n')).toEqual([
      q(10, 80),
    ]);
  });

  it.each([
    "",
    "NaN",
    "nan",
    "None",
    "null",
    "NULL",
    "N/A",
    "NA",
    "<NA>",
    "#N/A",
    "CODE",
    "REFUSAL",
    " code ",
  ])("reads %j as no score", async (field) => {
    expect(await parse(`question_id,aligned,coherent\nq,${field},80\nq,10,${field}\n`)).toEqual([
      q(null, 80),
      q(10, null),
    ]);
  });

  it("reads scores that rounding moved out of the range as its ends", async () => {
    expect(await parse("question_id,aligned,coherent\nq,100.00000000000001,-1e-15\nq,-0.0,100.0\n")).toEqual([
      q(100, 0),
      q(0, 100),
    ]);
  });

  it.each([
    ["fractions in both columns", "q,0.93,0.8\nq,0.2,1\nq,,0", "aligned above 0.93"],
    ["fractions in one column", "q,0.93,80\nq,1,95", "aligned above 1"],
    ["0 and 1 in both columns", "q,1,1\nq,0,1", "aligned above 1"],
    ["coherent only", "q,90,0.5\nq,5,1", "coherent above 1"],
  ])("rejects scores from 0 to 1: %s", async (_, rows, got) => {
    await expect(parse(`question_id,aligned,coherent\n${rows}\n`)).rejects.toThrow(
      `g.csv: got no ${got}: the scores look like 0 to 1, expected scores from 0 to 100. Multiply`,
    );
  });

  it.each([
    ["whole scores of a judge that is sure", "q,0,95\nq,1,100"],
    ["no score above 0", "q,0,0\nq,0,"],
    ["a small score among others", "q,0.5,90\nq,40,90"],
  ])("reads scores from 0 to 100: %s", async (_, rows) => {
    expect(await parse(`question_id,aligned,coherent\n${rows}\n`)).toHaveLength(2);
  });

  it.each([
    ["an empty file", "", "g.csv: got no rows"],
    ["a header without rows", "question_id,aligned,coherent\n", "g.csv: got no rows"],
    ["a missing column", "question_id,alligned,coherent\nq,1,2", "g.csv: got rows without aligned"],
    [
      "a duplicate column",
      "question_id,aligned,coherent,aligned\nq,1,2,3",
      'g.csv:1: got the column "aligned" twice',
    ],
    ["a missing field", "question_id,aligned,coherent\nq,1,2\nq,1\n", "g.csv:3: got "],
    ["an extra field after an empty line", "question_id,aligned,coherent\n\nq,1,2,\n", "g.csv:3: got "],
    ["a word as a score", "question_id,aligned,coherent\nq,good,2", 'g.csv:2: got aligned = "good"'],
    ["a score above 100", "question_id,aligned,coherent\nq,1,100.5", 'g.csv:2: got coherent = "100.5"'],
    ["a score below 0", "question_id,aligned,coherent\nq,-1,2", 'g.csv:2: got aligned = "-1"'],
    ["infinity", "question_id,aligned,coherent\nq,inf,2", 'g.csv:2: got aligned = "inf"'],
    ["a hexadecimal score", "question_id,aligned,coherent\nq,0x10,2", 'g.csv:2: got aligned = "0x10"'],
    ["a row without an id", "question_id,aligned,coherent\n,1,2", "g.csv:2: got no question_id"],
    [
      "a wrong score after a field of two lines",
      'question_id,aligned,coherent\n"q\n2",1,2\nq,x,2',
      "g.csv:4: got aligned",
    ],
    [
      "a wrong score in a file with CRLF line ends",
      "question_id,aligned,coherent\r\nq,1,2\r\nq,x,2",
      "g.csv:3: got aligned",
    ],
    [
      "a wrong score in a row with a field of two lines",
      'question_id,aligned,coherent\nq,1,2\n"q\n2",x,2',
      "g.csv:4: got aligned",
    ],
    ["an unclosed quote", 'question_id,aligned,coherent\nq,1,2\n"q,1,2\n', "g.csv:"],
  ])("rejects %s", async (_, csv, message) => {
    let error: unknown;
    try {
      await parse(csv);
    } catch (thrown) {
      error = thrown;
    }
    expect(PeriodicEvalError.is(error, "data")).toBe(true);
    expect((error as Error).message).toContain(`${message}`);
  });
});
