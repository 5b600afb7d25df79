import { expect, it } from 'vitest';
import type { ReloadResult } from '../../src/config/live-settings.ts';
import { createGatewayTool, type GatewayDeps } from '../../src/tools/gateway.ts';
import { aRun } from '../agent/support/builders.ts';

const status: GatewayDeps['status'] = async () => ({
  version: '1.2.3',
  startedAt: Date.UTC(2026, 10, 28),
  model: { name: 'demo', isDemo: true },
  channels: [
    { id: 'web', state: 'on', detail: 'Web' },
    { id: 'telegram', state: 'off', detail: 'set TELEGRAM_BOT_TOKEN' },
  ],
  problems: [{ id: 'redis', text: 'Redis is away.' }],
});

const plugins: GatewayDeps['plugins'] = () => [
  { kind: 'loaded', plugin: 'files' },
  {
    kind: 'loaded',
    plugin: 'shell',
    finding: { result: 'failed', detail: 'no bubblewrap', fix: 'apt install bubblewrap' },
  },
  { kind: 'failed', plugin: 'weather', problem: 'its digest has changed' },
];

async function call(action: string, reload?: () => Promise<ReloadResult>): Promise<string> {
  const tool = createGatewayTool({ status, plugins, ...(reload && { reload }) });
  const ctx = { callId: 'c1', run: aRun, signal: new AbortController().signal, update: () => undefined };
  const output = await tool.execute(tool.inputSchema.parse({ action }), ctx);
  if ('parked' in output) throw new Error('the tool waits');
  return output.text;
}

it('says how the gateway is, in words', async () => {
  expect((await call('status')).split('\n')).toEqual([
    'Parley 1.2.3, running since 2026-11-28T00:00:00.000Z.',
    'Model: demo (demo).',
    'Channel web: on, Web.',
    'Channel telegram: off, set TELEGRAM_BOT_TOKEN.',
    'Plugin files: loaded.',
    'Plugin shell: failed: no bubblewrap; apt install bubblewrap.',
    'Plugin weather: failed: its digest has changed.',
    'Problem (redis): Redis is away.',
  ]);
});

it('reloads the configuration and names the settings that need a restart', async () => {
  const applied = { kind: 'applied', applied: ['owners'], needsRestart: ['port'], plugins: [] } as const;
  expect(await call('reload', async () => applied)).toBe('Applied: owners.\nAfter a restart: port.');
  const nothing = { kind: 'applied', applied: [], needsRestart: [], plugins: [] } as const;
  expect(await call('reload', async () => nothing)).toBe('Nothing new to apply.');
  const plugins = [
    { plugin: 'weather', kind: 'loaded' },
    { plugin: 'tides', kind: 'failed', problem: 'It is off: no luck.' },
  ] as const;
  expect(await call('reload', async () => ({ ...nothing, plugins }))).toBe(
    'The plugin weather is loaded: the next message can use it.\nThe plugin tides is off: no luck.',
  );
});

it('belongs to owners, and changes nothing if the file has a problem', async () => {
  expect(createGatewayTool({ status, plugins })).toMatchObject({ authority: 'owner', replay: 'safe' });
  const refused = { kind: 'refused', problem: 'port: 70000 is too large' } as const;
  await expect(call('reload', async () => refused)).rejects.toThrow(
    'port: 70000 is too large\nNothing was changed.',
  );
  await expect(call('reload')).rejects.toThrow('cannot reload');
  for (const action of ['restart', 'stop', 'config', '']) await expect(call(action)).rejects.toThrow();
});
