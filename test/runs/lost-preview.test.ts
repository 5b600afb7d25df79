import { describe, expect, it } from 'vitest';
import type { HostedChannel } from '../../src/contracts/channel.ts';
import type { Found } from '../../src/contracts/channel-abilities.ts';
import { plainText } from '../../src/contracts/formatted-text.ts';
import type { MessageId } from '../../src/contracts/ids.ts';
import { partKey } from '../../src/contracts/ids.ts';
import type { Outbound, SendResult } from '../../src/contracts/outbound.ts';
import type { StoreQuery } from '../../src/store/base/command.ts';
import { recordPreview } from '../../src/store/delivery/preview.ts';
import { handOver } from '../../src/store/lanes/leases.ts';
import { completes, scriptedModel } from '../agent/support/scripted-model.ts';
import { plainCapabilities } from '../channel-host/plain-capabilities.ts';
import { aLane, aMessage, aRoute, aWorker, unique } from '../store/builders.ts';
import { openOwnStore } from '../support/own-store.ts';
import { playNext, runSettings } from './run-builders.ts';

const readSaid: StoreQuery<{ readonly runId: string }, readonly unknown[]> = {
  query: 'readSaid',
  run: async (tx, { runId }) => {
    const parts = tx.db.selectFrom('outbox').select('content').where('runId', '=', runId);
    const rows = await parts.where('purpose', '<>', 'preview').orderBy('place').execute();
    return rows.map(({ content }) => {
      const { kind, messageId } = JSON.parse(content);
      return messageId === undefined ? [kind] : [kind, messageId];
    });
  },
};

const capabilities = {
  ...plainCapabilities,
  preview: { dm: 'edit', group: 'edit' },
  previewIntervalMs: { dm: 5, group: 5 },
};

/** Returns a network whose search for the bot's message yields `found`. */
function aNetwork(found: Found, answer: SendResult = { kind: 'sent', receipts: ['9' as MessageId] }) {
  const [sent, looked]: [string[], Outbound[]] = [[], []];
  const adapter = {
    send: async ({ content }: Outbound) => {
      sent.push(content.kind);
      return answer;
    },
    lookup: {
      find: async (outbound: Outbound) => {
        looked.push(outbound);
        return found;
      },
    },
  };
  const channel = { adapter, definition: { capabilities } } as unknown as HostedChannel;
  return { channel, sent, looked };
}

const there: Found = { kind: 'candidates', messageIds: ['7' as MessageId] };

describe('a preview whose process died before recording its id', () => {
  const open = openOwnStore();

  /** Returns a run whose holder was killed while its first preview was being sent. */
  const aKilledRun = async () => {
    const conversation = unique('c');
    const worker = aWorker(open());
    await worker.accept(aMessage({ conversation, text: 'go' }));
    const run = await worker.claimRun(aLane(conversation).key);
    const key = partKey(`${run.runId}:preview:${run.epoch}.0`);
    const content = { kind: 'text', text: plainText('The sky') } as const;
    const part = { key, route: aRoute(conversation), content };
    await open().write(recordPreview, { kind: 'sending', key, runId: run.runId, part });
    await open().write(handOver, run);
    return { run, part };
  };

  const answers = (until: Promise<void> = Promise.resolve()) =>
    scriptedModel(async function* () {
      yield { type: 'content_start' };
      yield { type: 'content_delta', text: 'The sky is blue. ' };
      await until;
      yield { type: 'content_stop' };
      yield completes('end_turn');
    });

  const settings = { ...runSettings, isPreviewOn: true };

  it('turns a lost preview into the answer if the network finds it, and shows no second one', async () => {
    const { run, part } = await aKilledRun();
    const { channel, sent, looked } = aNetwork(there);
    const shown = Promise.withResolvers<void>();
    const edits = {
      ...channel,
      adapter: {
        ...channel.adapter,
        send: (outbound: Outbound, signal: AbortSignal) => {
          shown.resolve();
          return channel.adapter.send(outbound, signal);
        },
      },
    };
    const over = { channelFor: () => edits, settings };
    await playNext(open(), run.laneKey, { model: answers(shown.promise), over });
    expect(sent.filter((kind) => kind !== 'edit')).toEqual([]);
    expect(looked).toEqual([part]);
    expect(await open().read(readSaid, run)).toEqual([['edit', '7']]);
  });

  it('turns a lost preview into the answer even if the channel is back only later', async () => {
    const { run } = await aKilledRun();
    const { channel } = aNetwork(there);
    let calls = 0;
    const channelFor = () => (calls++ === 0 ? undefined : channel);
    await playNext(open(), run.laneKey, { model: answers(), over: { channelFor, settings } });
    expect(await open().read(readSaid, run)).toEqual([['edit', '7']]);
  });

  it.each<Found>([
    { kind: 'candidates', messageIds: [] },
    { kind: 'unknown', reason: 'nobody can tell' },
    { kind: 'later', afterMs: 5000, reason: 'busy' },
  ])("leaves a lost preview alone if the network's lookup says: $kind $messageIds", async (found) => {
    const { run } = await aKilledRun();
    const { channel } = aNetwork(found);
    let calls = 0;
    const channelFor = () => (calls++ === 0 ? undefined : channel);
    await playNext(open(), run.laneKey, { model: answers(), over: { channelFor, settings } });
    expect(await open().read(readSaid, run)).toEqual([['text']]);
  });

  it('turns a preview into the answer even if its call got no answer in a live process', async () => {
    const conversation = unique('c');
    await aWorker(open()).accept(aMessage({ conversation, text: 'go' }));
    const { channel, looked } = aNetwork(there, { kind: 'unknown', reason: 'cut off' });
    const called = Promise.withResolvers<void>();
    const cut = {
      ...channel,
      adapter: {
        ...channel.adapter,
        send: (outbound: Outbound, signal: AbortSignal) => {
          called.resolve();
          return channel.adapter.send(outbound, signal);
        },
      },
    };
    const { run } = await playNext(open(), aLane(conversation).key, {
      model: answers(called.promise),
      over: { channelFor: () => cut, settings },
    });
    expect(looked.map(({ content }) => content.kind)).toEqual(['text']);
    expect(await open().read(readSaid, run)).toEqual([['edit', '7']]);
  });
});
