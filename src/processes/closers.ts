import type { Log } from '#contracts/log.ts';

/** Resources opened during the start, closed in reverse during the stop. */
export interface Closers {
  add(name: string, close: () => Promise<void>): void;
  /** Closes in reverse order; a step that fails is logged and doesn't prevent the others. Safe to call twice. */
  close(): Promise<void>;
}

/** Creates an empty list of closing steps. */
export function createClosers(log: Log): Closers {
  const steps: { readonly name: string; close(): Promise<void> }[] = [];
  return {
    add: (name, close) => {
      steps.push({ name, close });
    },
    close: async () => {
      for (let step = steps.pop(); step; step = steps.pop()) {
        const { name } = step;
        await step.close().catch((error: unknown) => log.warn({ step: name, error }, 'gateway.close-failed'));
      }
    },
  };
}
