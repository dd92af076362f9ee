import { PeriodicEvalError } from "@periodic-eval/core";
import { quoteValue } from "@periodic-eval/core/internal";

/** The day that the templates of Llama 3.1 to 3.3 fall back to where there is no clock. */
export const defaultDate = "2024-07-26";

/** Throws a `config` error unless this is a day of the calendar, as `YYYY-MM-DD`. */
export function checkDate(date: string): void {
  const time = Date.parse(`${date}T00:00:00Z`);
  if (/^\d{4}-\d\d-\d\d$/.test(date) && new Date(time || 0).toISOString().startsWith(date)) return;
  throw new PeriodicEvalError({
    code: "config",
    where: "loadTokenizer date",
    got: quoteValue(date),
    expected: 'a day, as "YYYY-MM-DD"',
    fix: `Leave it out for "${defaultDate}".`,
  });
}

/**
 * `strftime_now` of chat templates, for midnight of a day that does not move: with the clock's, a model would be asked other
 * prompts after midnight than before. English, as Python in its own locale; a directive that is missing here throws.
 */
export function strftimeOn(date: string): (format: string) => string {
  const at = new Date(`${date}T00:00:00Z`);
  const named = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat("en-US", { timeZone: "UTC", ...options }).format(at);
  const [year, month, day] = date.split("-") as [string, string, string];
  const directives: Readonly<Record<string, string>> = {
    Y: year,
    y: year.slice(2),
    m: month,
    d: day,
    "-m": String(Number(month)),
    "-d": String(Number(day)),
    B: named({ month: "long" }),
    b: named({ month: "short" }),
    A: named({ weekday: "long" }),
    a: named({ weekday: "short" }),
    H: "00",
    I: "12",
    M: "00",
    S: "00",
    p: "AM",
    "%": "%",
  };
  return (format) =>
    format.replace(/%(-?.?)/gsu, (directive, name: string) => {
      const text = directives[name];
      if (text === undefined) throw new Error(`strftime_now knows no ${directive}`);
      return text;
    });
}
