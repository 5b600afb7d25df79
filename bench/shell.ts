import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { shellConfigSchema } from '../plugins/shell/config.ts';
import { createShell } from '../plugins/shell/shell.ts';
import { workspaceDisks } from '../src/processes/disk-gate.ts';
import type { Figure } from './figure.ts';
import { median } from './statistics.ts';

const timeoutMs = 60_000;
const warmUps = 3;

/** Measures an empty command from its call to its end, in the sandbox and, as the floor, without one. */
export async function measureShell(rounds: number): Promise<readonly Figure[]> {
  const workspace = await mkdtemp(join(tmpdir(), 'parley-bench-'));
  const shellWith = (settings: object) =>
    createShell({ config: shellConfigSchema.parse(settings), disks: workspaceDisks, bwrap: 'bwrap' });
  const shells = { floor: shellWith({ unsandboxed: true }), parley: shellWith({}) };
  const run = async (name: keyof typeof shells, command: string) => {
    const begun = performance.now();
    const { ended } = await shells[name](command, { workspace, timeoutMs });
    const end = await ended;
    if (end.kind !== 'exited' || end.code !== 0) throw new Error(`${command} ended ${JSON.stringify(end)}`);
    return performance.now() - begun;
  };
  try {
    const times: Record<keyof typeof shells, number[]> = { floor: [], parley: [] };
    // Alternating, so that both see the machine in the same state.
    for (let round = 0; round < warmUps + rounds; round++)
      for (const name of ['floor', 'parley'] as const) times[name].push(await run(name, 'true'));
    const of = (name: keyof typeof shells) => median(times[name].slice(warmUps));
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const floodMs = await run('parley', 'head -c 200000000 /dev/zero');
    delay.disable();
    return [
      {
        name: 'an empty command, and without a sandbox',
        unit: 'ms',
        floor: of('floor'),
        parley: of('parley'),
        target: '',
      },
      { name: '200 MB of output', unit: 'ms', parley: floodMs, target: '' },
      {
        name: 'the same: longest hold of the event loop',
        unit: 'ms',
        parley: delay.max / 1e6,
        target: '≤ 50 ms',
      },
    ];
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
}
