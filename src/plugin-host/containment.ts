/**
 * Contains what plugins from outside leave running: code that they start belongs to them, also when it runs later. A fault
 * that nothing catches is theirs instead of the end of the process, and their timers end with them. An endless
 * synchronous loop can't be contained.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

/** A plugin whose code runs. */
export type CodeOwner = { readonly plugin: string; readonly timers: Set<NodeJS.Timeout> };

export interface Containment {
  /** Runs the work as the plugin's. */
  run<T>(owner: CodeOwner, work: () => T): T;
  /** Runs Parley's own work that a plugin has asked for, as nobody's. */
  leave<T>(work: () => T): T;
  /** Stops the plugin's timers; returns how many were still running. */
  stopTimers(owner: CodeOwner): number;
  /** Watches this process. Call it before plugins from outside are set up. Safe to call twice. */
  watch(): void;
  close(): void;
}

/** `onFault` is called for faults that a plugin has let pass. */
export function createContainment(onFault: (plugin: string, error: unknown) => void): Containment {
  const current = new AsyncLocalStorage<CodeOwner | undefined>();
  let unwatch: (() => void) | undefined;
  const onUncaught = (error: unknown) => {
    const owner = current.getStore();
    if (owner !== undefined) return onFault(owner.plugin, error);
    // As Node.js does without a listener.
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  };
  return {
    run: (owner, work) => current.run(owner, work),
    leave: (work) => current.run(undefined, work),
    stopTimers: ({ timers }) => {
      const running = [...timers].filter((timer) => !isOver(timer));
      for (const timer of running) clearTimeout(timer);
      timers.clear();
      return running.length;
    },
    watch: () => {
      if (unwatch !== undefined) return;
      const { setTimeout: once, setInterval: often } = globalThis;
      globalThis.setTimeout = ownTimers(once, current);
      globalThis.setInterval = ownTimers(often, current);
      process.on('uncaughtException', onUncaught);
      process.on('unhandledRejection', onUncaught);
      unwatch = () => {
        Object.assign(globalThis, { setTimeout: once, setInterval: often });
        process.off('uncaughtException', onUncaught);
        process.off('unhandledRejection', onUncaught);
      };
    },
    close: () => {
      unwatch?.();
      unwatch = undefined;
    },
  };
}

/** After this many timers, those that have ended are forgotten. */
const rememberedTimers = 1_000;

/** Wraps a function that starts timers, so that those of plugins are known. */
function ownTimers<Start extends typeof setTimeout | typeof setInterval>(
  start: Start,
  current: AsyncLocalStorage<CodeOwner | undefined>,
): Start {
  return new Proxy(start, {
    apply: (target, self, args) => {
      const timer: NodeJS.Timeout = Reflect.apply(target, self, args);
      const timers = current.getStore()?.timers;
      if (timers === undefined || isStartedByNode()) return timer;
      if (timers.size >= rememberedTimers) for (const old of timers) if (isOver(old)) timers.delete(old);
      timers.add(timer);
      return timer;
    },
  });
}

/** Says whether Node.js itself starts the timer: those of its `fetch` serve the whole process. */
function isStartedByNode(): boolean {
  const { stackTraceLimit } = Error;
  // This function, the wrapper, and the caller.
  Error.stackTraceLimit = 3;
  const [, , , caller = ''] = (new Error().stack ?? '').split('\n');
  Error.stackTraceLimit = stackTraceLimit;
  return /\(?node:/.test(caller);
}

/** Says whether the timer has ended or was stopped. */
function isOver(timer: NodeJS.Timeout): boolean {
  // Node.js has no other way to know.
  return Reflect.get(timer, '_destroyed') === true;
}
