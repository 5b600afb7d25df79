import { expect, it } from 'vitest';
import { z } from 'zod';
import type { Capabilities } from '#contracts/capabilities.ts';
import type { ChannelDefinition, HostedChannel } from '#contracts/channel.ts';
import { plainText } from '#contracts/formatted-text.ts';
import { accountId, channelId, conversationId } from '#contracts/ids.ts';
import { createChannelRegistry } from '../../src/channel-host/channel-registry.ts';
import type { LiveEvent } from '../../src/queue/live-events.ts';
import { patienceMs } from '../support/patience.ts';
import { silentLog } from '../support/silent-log.ts';
import { plainCapabilities } from './plain-capabilities.ts';

const capabilities: Capabilities = { ...plainCapabilities, preview: { dm: 'draft', group: 'none' } };

/** Returns a registry with one connection. */
function aRoster({ isSessionBound }: { readonly isSessionBound: boolean }) {
  const published: LiveEvent[] = [];
  const shown: string[] = [];
  const roster = createChannelRegistry({
    log: silentLog,
    live: { publish: (event) => void published.push(event) },
  });
  const definition: ChannelDefinition = {
    id: channelId('net'),
    capabilities: { ...capabilities, isSessionBound },
    configSchema: z.unknown(),
    create: () => channel.adapter,
  };
  const channel: HostedChannel = {
    definition,
    account: { id: accountId('bot'), name: 'bot' },
    adapter: {
      identify: async () => channel.account,
      start: async () => undefined,
      stop: async () => undefined,
      send: async () => ({ kind: 'sent', receipts: [] }),
      preview: { draft: async (_route, _id, { text }) => void shown.push(text) },
    },
  };
  const route = {
    channel: definition.id,
    account: channel.account.id,
    conversation: conversationId('c'),
  } as const;
  roster.define(definition);
  return { roster, channel, route, published, shown };
}

const signal = AbortSignal.timeout(patienceMs);

it('serves a network through any of its connections, whichever process receives', () => {
  const { roster, channel, route } = aRoster({ isSessionBound: false });
  expect(roster.find(route)).toBeUndefined();
  roster.enter('net', channel);
  expect(roster.serving(route)).toBe(channel);
  expect(roster.find(route)).toBe(channel);
  expect(roster.holding(route)).toBeUndefined();
  roster.hold('net/bot');
  expect(roster.holding(route)).toBe(channel);
});

it('says what a network can do before it is connected', () => {
  const { roster, channel, route } = aRoster({ isSessionBound: false });
  expect(roster.find(route)).toBeUndefined();
  expect(roster.capabilitiesFor(route)).toBe(channel.definition.capabilities);
  expect(roster.capabilitiesFor({ ...route, channel: channelId('off') })).toBeUndefined();
});

it('serves a session-bound channel only in the process its clients are connected to', () => {
  const { roster, channel, route } = aRoster({ isSessionBound: true });
  roster.enter('net', channel);
  expect(roster.serving(route)).toBeUndefined();
  roster.hold('net/bot');
  expect(roster.serving(route)).toBe(channel);
  roster.markReleased('net/bot');
  expect(roster.serving(route)).toBeUndefined();
});

it('shapes answers for a session-bound channel elsewhere and forwards its drafts', async () => {
  const { roster, channel, route, published, shown } = aRoster({ isSessionBound: true });
  const standIn = roster.find(route);
  expect(standIn?.definition.capabilities.isSessionBound).toBe(true);
  const text = plainText('so far');
  await standIn?.adapter.preview?.draft(route, 7, text, signal);
  expect(published).toEqual([{ kind: 'draft', route, draftId: 7, text }]);

  // Another process's draft is shown only where the clients are connected.
  const draft = { kind: 'draft', route, draftId: 7, text } as const;
  roster.enter('net', channel);
  roster.showDraft(draft);
  expect(shown).toEqual([]);
  roster.hold('net/bot');
  roster.showDraft(draft);
  expect(shown).toEqual(['so far']);
});
