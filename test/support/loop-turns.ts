/** Blocks the event loop for longer than code may without yielding. */
export function holdLoop(): void {
  const until = performance.now() + 12;
  while (performance.now() < until) Math.sqrt(until);
}

/** Counts the turns of the event loop, however long each one takes. */
export function countTurns() {
  let turns = 0;
  let isOver = false;
  const next = () => {
    turns += 1;
    if (!isOver) setImmediate(next);
  };
  setImmediate(next);
  return {
    now: () => turns,
    end: () => {
      isOver = true;
      return turns;
    },
  };
}
