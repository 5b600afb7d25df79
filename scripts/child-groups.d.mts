import type { SpawnOptions } from 'node:child_process';

export function createChildGroups(): {
  run(program: string, args: readonly string[], options?: SpawnOptions): Promise<number>;
  endAll(): Promise<void>;
};
