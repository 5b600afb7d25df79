/** Calls the code of one plugin from outside, and knows which calls are running. */
import type { CodeOwner, Containment } from './containment.ts';

export interface PluginCode {
  readonly owner: CodeOwner;
  /** Runs the work as the plugin's: what it starts belongs to it. Counts as running until a promise it returns settles. */
  run<T>(work: () => T): T;
  /** Returns the steps of a stream of the plugin, each run as the plugin's. Counts as running until it has ended. */
  stream<T>(open: () => AsyncIterable<T>): AsyncGenerator<T>;
  /** Runs what the plugin asks of Parley, so that nothing of it belongs to the plugin. */
  leave<T>(work: () => T): T;
  /** Resolves when no call is running. */
  idle(): Promise<void>;
}

export function createPluginCode(owner: CodeOwner, { run, leave }: Containment): PluginCode {
  let calls = 0;
  let waiting: PromiseWithResolvers<void> | undefined;
  const end = () => {
    calls -= 1;
    if (calls > 0) return;
    waiting?.resolve();
    waiting = undefined;
  };
  return {
    owner,
    run: (work) => {
      calls += 1;
      let isOpen = false;
      try {
        const result = run(owner, work);
        if (result instanceof Promise) {
          isOpen = true;
          result.then(end, end);
        }
        return result;
      } finally {
        if (!isOpen) end();
      }
    },
    stream: async function* (open) {
      calls += 1;
      try {
        const steps = run(owner, () => open()[Symbol.asyncIterator]());
        try {
          for (;;) {
            const step = await run(owner, () => steps.next());
            if (step.done) return;
            yield step.value;
          }
        } finally {
          await run(owner, () => steps.return?.());
        }
      } finally {
        end();
      }
    },
    leave,
    idle: async () => {
      if (calls === 0) return;
      waiting ??= Promise.withResolvers();
      await waiting.promise;
    },
  };
}

/** Calls code of Parley's own plugins: it needs no supervision, and never ends before Parley does. */
export function createOwnCode(owner: CodeOwner): PluginCode {
  const call = <T>(work: () => T) => work();
  return {
    ...{ owner, run: call, leave: call, idle: async () => undefined },
    stream: async function* (open) {
      yield* open();
    },
  };
}

/** Returns an object whose methods run as `enter` runs them, except for the members in `instead`. */
export function withMethods<T extends object>(
  target: T,
  enter: <R>(work: () => R) => R,
  instead: Partial<T> = {},
): T {
  // It may be of any class, so a member is read when it is asked for. A proxy of itself could change none of a frozen one.
  return new Proxy({} as T, {
    has: (_, key) => key in target,
    get: (_, key) => {
      if (Object.hasOwn(instead, key)) return Reflect.get(instead, key);
      const member: unknown = Reflect.get(target, key);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => enter(() => Reflect.apply(member, target, args));
    },
  });
}
