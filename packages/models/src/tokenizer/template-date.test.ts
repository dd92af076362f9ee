import { defaultDate, strftimeOn, templateDate } from "@periodic-eval/tokenizers";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { loadTokenizer, compileTemplate } from "./load-tokenizer.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

// From the templates of Llama 3.1, and of SmolLM3, which has no fallback.
const withFallback = `{%- if not date_string is defined %}{%- if strftime_now is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- else %}{%- set date_string = "26 Jul 2024" %}{%- endif %}{%- endif %}Today Date: {{ date_string }}`;
const without = `{%- set today = strftime_now("%d %B %Y") -%}Today Date: {{ today }}`;

it.each([
  [withFallback, "26 Jul 2024", "05 Mar 2026"],
  [without, "26 July 2024", "05 March 2026"],
])("gives a template the same day at any time: %s", async (source, fallback, given) => {
  const empty = { messages: [], addGenerationPrompt: true };
  for (const now of ["2025-12-31T23:59:59", "2026-01-01T00:00:01"]) {
    vi.setSystemTime(new Date(now));
    expect(compileTemplate(source, {})(empty).text).toBe(`Today Date: ${fallback}`);
    expect(compileTemplate(source, {}, "2026-03-05")(empty).text).toBe(`Today Date: ${given}`);
  }
});

// datetime(2026, 3, 5).strftime(…) in Python 3.11, a Thursday.
it("formats as Python's strftime at midnight, and throws for unknown directives", () => {
  const format = "%Y-%m-%d %y %-m/%-d %B %b %A %a %H:%M:%S %I %p 100%%";
  expect(strftimeOn("2026-03-05")(format)).toBe(
    "2026-03-05 26 3/5 March Mar Thursday Thu 00:00:00 12 AM 100%",
  );
  for (const unknown of ["%Q", "%-Y", "%"])
    expect(() => strftimeOn(defaultDate)(unknown)).toThrow(`strftime_now does not support ${unknown}`);
});

it("accepts only days of the calendar as YYYY-MM-DD", async () => {
  for (const right of [defaultDate, "2024-02-29"]) expect(templateDate.parse(right)).toBe(right);
  for (const wrong of ["2023-02-29", "2024-13-01", "26 Jul 2024", "2024-7-26", "", 20240726]) {
    await expect(loadTokenizer("none", { date: wrong as string }), String(wrong)).rejects.toMatchObject({
      code: "config",
      path: ["date"],
      expected: 'a day as "YYYY-MM-DD"',
    });
  }
});
