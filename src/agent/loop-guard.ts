import type { ToolCallData } from '#contracts/message.ts';
import { readInput } from './call-input.ts';

/** A call by what it does, without its id. */
export type MadeCall = Pick<ToolCallData, 'name' | 'input'>;

/** Notices a model that makes one identical call again and again. */
export interface LoopGuard {
  /** Counts the call; false once it has been made more than `limit` times in a row. */
  admit(call: MadeCall): boolean;
}

/** Identical means the same tool with the same arguments, whatever the order of keys or the spacing. */
export function createLoopGuard(limit: number): LoopGuard {
  let last: string | undefined;
  let count = 0;

  return {
    admit: (call) => {
      const key = `${call.name} ${canonical(call.input)}`;
      count = key === last ? count + 1 : 1;
      last = key;
      return count <= limit;
    },
  };
}

function canonical(input: string): string {
  try {
    return JSON.stringify(readInput(input), sortKeys);
  } catch {
    // Not JSON: the text itself is what repeats.
    return input;
  }
}

function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
