import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseJudgeReply } from "./json-reply.ts";
import { findJsonObjects } from "./json-objects.ts";

const parse = (reply: string) => parseJudgeReply(reply, ["aligned", "coherent"]);
/** Some 30 ms are taken; quadratic time would be minutes. */
const patience = { timeout: 60_000 };

describe("parseJudgeReply", () => {
  it.each([
    // JSON.parse moves keys of digits to the front; the parser keeps the order of the document.
    ['{"b":{"aligned":1,"coherent":2},"1":{"aligned":3,"coherent":4}}', [3, 4]],
    // A repeated key has its last value, at the place of the last one.
    [
      '{"x":{"aligned":1,"coherent":1},"y":{"aligned":2,"coherent":2},"x":{"aligned":3,"coherent":3}}',
      [3, 3],
    ],
    ['{"x":{"aligned":1,"coherent":1},"x":0}', null],
    ['{"\\u0061ligned": 5, "coherent": "\\u0036"}', [5, 6]],
    ['{"__proto__": {"aligned": 5, "coherent": 6}}', [5, 6]],
    ['{"a":[[{"aligned":5,"coherent":6}],[]],"b":[{}]}', [5, 6]],
    ['{"aligned": -0, "coherent": "-0.0"}', [0, 0]],
    ['{"aligned": "\\u00a05", "coherent": 6}', null],
    ['{"aligned": 5,\u00a0"coherent": 6}', null],
    ['{"aligned": 05, "coherent": 6}', null],
    ['{"aligned": 5., "coherent": 6}', null],
    ['{"aligned": "+85", "coherent": "085"}', [85, 85]],
    ['{,"aligned": 5, "coherent": 6}', null],
    ['{"aligned": 5, "coherent": 6, "tags": [,]}', null],
    // The first brace reads to the quote before the second, and fails; from the second it reads.
    ['{"note {"aligned": 5, "coherent": 6}', [5, 6]],
    // An unclosed object around a complete one: the inner one is found.
    ['{"a": {"aligned": 5, "coherent": 6}, ', [5, 6]],
    ['{"a": {"b": [{"aligned": 5, "coherent": 6}], "c": {"d": ', [5, 6]],
  ])("%s", (reply, expected) => {
    const parsed = parse(reply);
    if (expected === null) expect(parsed).toHaveProperty("unparseable");
    else expect(parsed).toEqual({ scores: { aligned: expected[0], coherent: expected[1] } });
  });

  it("parses the scores of any names", () => {
    expect(parseJudgeReply('{"on topic": 5}', ["on topic"])).toEqual({ scores: { "on topic": 5 } });
    expect(parseJudgeReply('{"kind": 5}', ["kind", "toString"])).toEqual({ unparseable: "missing_key" });
  });

  /** Pieces that meet in JSON and in what is nearly so. */
  const piece = fc.oneof(
    fc.constantFrom(
      ...'{}[]",:\\ \n\t',
      '"aligned":',
      '"coherent":',
      "50",
      "-1",
      '{"',
      '\\"',
      "true",
      "\ud800",
    ),
    fc.json({ maxDepth: 3 }),
    fc.string({ maxLength: 8 }),
  );

  it("returns scores within 0–100 or a reason, and never throws", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const parsed = parse(pieces.join(""));
        if (!("scores" in parsed)) return;
        for (const score of Object.values(parsed.scores)) expect(score >= 0 && score <= 100).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it("finds scores inside any JSON, in prose without braces", () => {
    const score = fc.integer({ min: 0, max: 100 });
    const prose = fc.string({ maxLength: 30 }).map((text) => text.replaceAll(/[{}]/g, ""));
    fc.assert(
      fc.property(prose, prose, score, score, fc.jsonValue(), (before, after, aligned, coherent, more) => {
        const wrapped = JSON.stringify([more, { inner: [{ aligned, coherent, more }] }]);
        expect(parse(before + wrapped + after)).toEqual({ scores: { aligned, coherent } });
      }),
    );
  });

  /** The policy's sentences as they stand: try `JSON.parse` from every brace to every other. */
  function byTheLetter(text: string): number[] {
    const ends: number[] = [];
    for (let at = 0; at < text.length; at++) {
      if (text[at] !== "{") continue;
      for (let end = at + 2; end <= text.length; end++) {
        if (text[end - 1] !== "}") continue;
        try {
          JSON.parse(text.slice(at, end));
        } catch {
          continue;
        }
        ends.push(end);
        at = end - 1;
        break;
      }
    }
    return ends;
  }

  it("finds the same objects as a search from every position", () => {
    const token = fc.constantFrom("{", "}", "[", "]", '"', ":", ",", "1", "a", "\\", '{"a":', '"a":1', " ");
    fc.assert(
      fc.property(fc.array(token, { maxLength: 24 }), (tokens) => {
        // `JSON.parse` knows no trailing comma; of two in a row one would be left.
        const text = tokens.join("").replaceAll(/(?:,\s*)+(?=[}\]])/g, "");
        expect(findJsonObjects(text).map(({ end }) => end)).toEqual(byTheLetter(text));
      }),
      { numRuns: 5000 },
    );
  });

  it.each([
    ["{"],
    ['{"a":'],
    ['{"a":['],
    ["{ "],
    ['{"'],
    ['{"{":"'],
    ['{"a":{"b":[{},'],
    ['{"":","{":",'],
    ['{"\\"'],
    ['{"a":"{\\"b\\":'],
    ["[{}"],
  ])("takes time linear in a hostile reply of %s …", patience, (unit) => {
    const reply = unit.repeat(Math.ceil(400_000 / unit.length));
    expect(parse(reply)).toHaveProperty("unparseable");
  });

  it("takes linear time for a string that is almost a number", patience, () => {
    const reply = `{"aligned": "${" ".repeat(400_000)}x", "coherent": "${"1".repeat(400_000)}x"}`;
    expect(parse(reply)).toEqual({ unparseable: "not_numeric" });
  });

  it("parses objects of any depth", () => {
    const depth = 50_000;
    const deep = `${'{"a":['.repeat(depth)}{"aligned":1,"coherent":2}${"]}".repeat(depth)}`;
    expect(parse(deep)).toEqual({ scores: { aligned: 1, coherent: 2 } });
  });
});
