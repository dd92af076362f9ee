import { expect, it } from "vitest";
import { csvLine } from "./tidy-rows.ts";

it("quotes cells as RFC 4180, and leaves null empty", () => {
  expect(csvLine(["a", 'b "c", d', -1.5, null, "e\nf"])).toBe('a,"b ""c"", d",-1.5,,"e\nf"');
});

it.each(['=HYPERLINK("http://a")', "+1", "-1+2", "@SUM(A1)", "\tx", "\r=1"])(
  "writes %j so that a spreadsheet does not run it",
  (text) => {
    expect(csvLine([text])).toMatch(/^"?'/);
  },
);
