const lineSeconds = 60;

/**
 * Waits for work, and logs a line after each minute without a sign of progress.
 *
 * @param text Returns the line. `seconds` counts since the last sign.
 * @param work Calls `progressed` at each sign of progress.
 */
export async function withMinuteLines<T>(
  log: (line: string) => void,
  text: (seconds: number) => string,
  work: (progressed: () => void) => Promise<T>,
): Promise<T> {
  let timer: ReturnType<typeof setInterval> | undefined;
  const begin = () => {
    clearInterval(timer);
    let seconds = 0;
    timer = setInterval(() => log(text((seconds += lineSeconds))), lineSeconds * 1000);
  };
  begin();
  try {
    return await work(begin);
  } finally {
    clearInterval(timer);
  }
}
