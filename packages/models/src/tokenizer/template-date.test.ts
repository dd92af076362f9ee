import { PeriodicEvalError } from "@periodic-eval/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { compileTemplate } from "./template.ts";
import { checkDate, defaultDate, strftimeOn } from "./template-date.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

// As in the templates of Llama 3.1 and of SmolLM3, which has no fallback.
const withFallback = `{%- if not date_string is defined %}{%- if strftime_now is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- else %}{%- set date_string = "26 Jul 2024" %}{%- endif %}{%- endif %}Today Date: {{ date_string }}`;
const without = `{%- set today = strftime_now("%d %B %Y") -%}Today Date: {{ today }}`;

test.each([
  [withFallback, "26 Jul 2024", "05 Mar 2026"],
  [without, "26 July 2024", "05 March 2026"],
])("a template that asks for today gets a day that does not move: %s", async (source, fallback, given) => {
  for (const now of ["2025-12-31T23:59:59", "2026-01-01T00:00:01"]) {
    vi.setSystemTime(new Date(now));
    expect((await compileTemplate(source, {}))([], true).text).toBe(`Today Date: ${fallback}`);
    expect((await compileTemplate(source, {}, "2026-03-05"))([], true).text).toBe(`Today Date: ${given}`);
  }
});

// datetime(2026, 3, 5).strftime(…) in Python 3.11, a Thursday.
test("formats as Python's strftime at midnight, and refuses what it does not know", () => {
  const format = "%Y-%m-%d %y %-m/%-d %B %b %A %a %H:%M:%S %I %p 100%%";
  expect(strftimeOn("2026-03-05")(format)).toBe(
    "2026-03-05 26 3/5 March Mar Thursday Thu 00:00:00 12 AM 100%",
  );
  for (const unknown of ["%Q", "%-Y", "%"])
    expect(() => strftimeOn(defaultDate)(unknown)).toThrow(`strftime_now knows no ${unknown}`);
});

test("a day that is none is refused", () => {
  checkDate(defaultDate);
  checkDate("2024-02-29");
  for (const wrong of ["2023-02-29", "2024-13-01", "26 Jul 2024", "2024-7-26", "", 20240726]) {
    let thrown: unknown;
    try {
      checkDate(wrong as string);
    } catch (error) {
      thrown = error;
    }
    expect(PeriodicEvalError.is(thrown, "config"), String(wrong)).toBe(true);
  }
});
