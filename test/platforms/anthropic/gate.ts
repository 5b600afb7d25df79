/**
 * A gate inside a stream that the test opens, so that it can act at an exact point without sleeping: `await
 * gate.reached`, steer, `gate.open()`.
 */
export type Gate = {
  /** Resolves when a stream has reached the gate. */
  readonly reached: Promise<void>;
  /** Resolves when the test has opened it. */
  readonly opened: Promise<void>;
  arrive(): void;
  open(): void;
};

export function createGate(): Gate {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  return {
    reached: reached.promise,
    opened: opened.promise,
    arrive: reached.resolve,
    open: opened.resolve,
  };
}
