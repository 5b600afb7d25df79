import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { ChannelEntry } from '#contracts/channel.ts';
import { channelId } from '#contracts/ids.ts';
import { readEnvironment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { createOwnerAlerts } from '../../src/outbox/owner-alerts.ts';
import { staleAlerts } from '../../src/roles/model-alerts.ts';
import { type AlertName, raiseAlert, readOpenAlerts } from '../../src/store/alerts/alert.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { until } from '../e2e/until.ts';
import { aStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';

const settings = {
  model: 'own',
  models: {
    own: { provider: 'ollama', id: 'kept', fallbacks: ['anthropic/claude-kept'] },
    plain: { provider: 'ollama', id: 'plain', tools: false },
  },
  agents: [{ id: 'main', titleModel: 'ollama/small' }],
  channels: { signal: { enabled: false } },
};
const variables = {
  ANTHROPIC_API_KEY: 'sk-ant-0000001',
  TELEGRAM_BOT_TOKEN: `7000001:${'aB3'.repeat(12)}`,
};

const gone: readonly AlertName[] = [
  { kind: 'channel-down', subject: 'telegram.work' },
  { kind: 'channel-unauthorised', subject: 'telegram.work' },
  { kind: 'channel-challenge', subject: 'carrier' },
  { kind: 'delivery-waits', subject: 'signal/bot/1' },
  { kind: 'model-key', subject: 'openai' },
  { kind: 'model-key', subject: 'anthropic/claude-removed' },
  { kind: 'model-without-tools', subject: 'ollama/removed' },
  { kind: 'model-window', subject: 'ollama/removed' },
  { kind: 'model-cache', subject: 'anthropic/claude-removed' },
  // The configuration now says that this model takes none.
  { kind: 'model-without-tools', subject: 'ollama/plain' },
  { kind: 'context-full', subject: 'clerk' },
];
const kept: readonly AlertName[] = [
  { kind: 'channel-down', subject: 'telegram' },
  { kind: 'delivery-waits', subject: 'telegram/bot/1' },
  { kind: 'delivery-unknown', subject: 'signal/bot/1' },
  { kind: 'delivery-expired', subject: 'signal/bot/1' },
  { kind: 'conversation-unreachable', subject: 'signal/bot/1' },
  { kind: 'model-key', subject: 'anthropic' },
  { kind: 'model-key', subject: 'anthropic/claude-kept' },
  { kind: 'model-without-tools', subject: 'ollama/small' },
  { kind: 'context-full', subject: 'main' },
];

it('ends the alerts whose subject was removed from the settings, and no others', async () => {
  const { store, dataDir } = await aStore();
  writeFileSync(join(dataDir, 'parley.config.json'), JSON.stringify(settings));
  const config = loadConfig(readEnvironment(variables), dataDir);
  for (const alert of [...gone, ...kept]) await store.write(raiseAlert, alert);
  const channels = ['telegram', 'signal'].map((id): ChannelEntry => {
    return { id: channelId(id), load: () => Promise.reject(new Error('nobody loads it')) };
  });

  const deps = { store, clock: systemClock, log: silentLog, texts: textsFor('en'), owners: [] };
  const alerts = createOwnerAlerts({
    ...deps,
    reach: () => ({ accounts: [], awaited: [], accountOf: () => undefined }),
    deliver: () => undefined,
  });
  onTestFinished(alerts.stop);
  alerts.endWhere(staleAlerts(config, channels));
  const open = () => store.read(readOpenAlerts, {});
  await until(async () => (await open()).length <= kept.length, { what: 'the end of some alerts' });
  expect(await open()).toEqual(expect.arrayContaining([...kept]));
});
