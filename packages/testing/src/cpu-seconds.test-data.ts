/** Returns the seconds of processor time that `work` takes, which other processes on the machine do not change. */
export async function cpuSeconds(work: () => unknown): Promise<number> {
  const started = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(started);
  return (user + system) / 1e6;
}
