import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { accountId, agentId, channelId, conversationId } from '#contracts/ids.ts';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { createInboundPolicy, localLaneKey } from '../../src/inbound/inbound-policy.ts';
import type { Store } from '../../src/store/base/command.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { openStore } from '../support/open-store.ts';
import { aTimeline } from '../support/some-feed.ts';
import { anAccount, createIntakeFixture } from './support/intake-fixture.ts';

describe("the page's conversation", () => {
  const page = { channel: 'web', peer: 'owner', bot: 'web' };
  const route = {
    channel: channelId('web'),
    account: accountId('web'),
    conversation: conversationId('owner'),
  };
  let dataDir = '';
  let store: Store | undefined;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'parley-page-'));
    store = await openStore({ kind: 'sqlite', dataDir });
  });
  afterAll(async () => {
    await store?.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  });

  /** Returns a page under these bindings, and the newest two items that it reads as it connects. */
  const aPage = (bindings: Config['bindings'] = []) => {
    if (!store) throw new Error('the store is not open');
    const town = createIntakeFixture(store, { config: { bindings } });
    const config = { ...loadConfig({ values: {}, unknown: [] }, '/nowhere'), bindings };
    const policy = createInboundPolicy(config, textsFor('en'));
    const reader = aTimeline(store, (at) => localLaneKey(policy, { route: at, peer: page.peer }));
    const shown = async () =>
      (await reader.read(route, { limit: 2 })).map(({ author, text, state }) => [author.kind, text, state]);
    const answered = async (text: string) => {
      const lane = town.laneOf(await town.send(page, text));
      await town.worker.answer(await town.worker.claimRun(lane), `answer to ${text}`);
    };
    return { town, shown, answered };
  };

  it.each<[string, Config['bindings']]>([
    ['no binding', []],
    ['a binding of its channel', [{ agent: agentId('clerk'), channel: 'web' }]],
    ['a binding of its account', [{ agent: agentId('cook'), account: 'web' }]],
    ['a binding of its person', [{ agent: agentId('maid'), peer: 'owner' }]],
    ['a binding of its conversation', [{ agent: agentId('groom'), conversation: 'owner' }]],
  ])("shows the page's messages with their answers under %s", async (name, bindings) => {
    const { shown, answered } = aPage(bindings);
    await answered(name);
    expect(await shown()).toEqual([
      ['person', name, 'delivering'],
      ['agent', `answer to ${name}`, 'pending'],
    ]);
  });

  it.each(['asks for the code', 'types the code'])(
    'keeps the page in its conversation if it is linked and %s',
    async (role) => {
      const { town, shown, answered } = aPage();
      const phone = anAccount('alpha');
      await (role === 'asks for the code' ? town.link(page, phone) : town.link(phone, page));
      await answered(`linked: ${role}`);
      expect((await shown())[0]).toEqual(['person', `linked: ${role}`, 'delivering']);
    },
  );
});
