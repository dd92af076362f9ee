import * as z from "zod";

/** The day that the templates of Llama 3.1 to 3.3 fall back to without a clock. */
export const defaultDate = "2024-07-26";

/** The option `date`: a day of the calendar as `YYYY-MM-DD`. */
export const templateDate = z
  .string('a day as "YYYY-MM-DD"')
  .refine(isCalendarDay, 'a day as "YYYY-MM-DD"')
  .meta({ fix: `Omit it for "${defaultDate}".` });

function isCalendarDay(date: string): boolean {
  const time = Date.parse(`${date}T00:00:00Z`);
  return /^\d{4}-\d\d-\d\d$/.test(date) && new Date(time || 0).toISOString().startsWith(date);
}

/**
 * Returns `strftime_now` for chat templates, at midnight of a fixed day: with the clock, a model would get other prompts
 * after midnight than before. English, like Python in its default locale; throws for an unsupported directive.
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
      if (text === undefined) throw new Error(`strftime_now does not support ${directive}`);
      return text;
    });
}
