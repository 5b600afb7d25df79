/** Returns fractional milliseconds since the epoch: the only clock of a run, shared with the local platforms. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}

export function withDeadline<T>(
  ms: number,
  problem: string,
  begin: (resolve: (value: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${problem} within ${ms} ms`)), ms);
    begin((value) => {
      clearTimeout(timer);
      resolve(value);
    });
  });
}
