import { describe, expect, it } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { HostedChannel } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { MessageId } from '#contracts/ids.ts';
import type { SendResult } from '#contracts/outbound.ts';
import type { Store } from '../../src/store/base/command.ts';
import { recordPreview } from '../../src/store/delivery/preview.ts';
import { handOver } from '../../src/store/lanes/leases.ts';
import { readPreview } from '../../src/store/lanes/recover-run.ts';
import { readHistory } from '../../src/store/reads/read-transcript.ts';
import { aTool } from '../agent/support/builders.ts';
import { callsTools, hangsAfter, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { plainCapabilities } from '../channel-host/plain-capabilities.ts';
import { aLane, aMessage, aWorker, unique } from '../store/builders.ts';
import { openOwnStore } from '../support/own-store.ts';
import { playNext, runSettings } from './run-builders.ts';

describe('a handover while tools run', () => {
  const store = openOwnStore();

  /** Runs the lane's next or unfinished run in a process that is asked to stop while the tool `slow` is running. */
  const play = async (
    conversation: string,
    { model, ran }: { model: ReturnType<typeof scriptedModel>; ran: string[] },
  ) => {
    const shutdown = new AbortController();
    const slow = aTool('slow', {
      replay: 'never',
      execute: async (_input, { signal }) => {
        shutdown.abort();
        await new Promise((resolve) => setTimeout(resolve, 30));
        if (signal.aborted) throw new Error('cut short');
        ran.push('slow');
        return { text: 'slow is done' };
      },
    });
    const quick = aTool('quick', {
      replay: 'never',
      execute: async () => {
        ran.push('quick');
        return { text: 'quick is done' };
      },
    });
    const { signal } = shutdown;
    const played = await playNext(store(), aLane(conversation).key, { model, tools: [slow, quick], signal });
    return played.run;
  };

  const resultsOf = async (sessionId: string) =>
    (await store().read(readHistory, { sessionId })).flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === 'tool_result' ? [part.data.content] : [])),
    );

  it('lets the running tool finish and leaves the later calls to the next process', async () => {
    const conversation = unique('c');
    const ran: string[] = [];
    await aWorker(store()).accept(aMessage({ conversation, text: 'go' }));
    const calls = callsTools({ id: '1', name: 'slow' }, { id: '2', name: 'quick' });
    await play(conversation, { model: scriptedModel(calls), ran });
    expect(ran).toEqual(['slow']);
    const run = await play(conversation, { model: scriptedModel(says('all done')), ran });
    expect(ran).toEqual(['slow', 'quick']);
    expect(await resultsOf(run.sessionId)).toEqual(['slow is done', 'quick is done']);
  });

  it('lets the running tool finish even after calls that were refused', async () => {
    const conversation = unique('c');
    const ran: string[] = [];
    await aWorker(store()).accept(aMessage({ conversation, text: 'go' }));
    const model = scriptedModel(
      callsTools({ id: '1', name: 'no-such-tool' }),
      callsTools({ id: '2', name: 'slow' }),
    );
    const run = await play(conversation, { model, ran });
    expect(ran).toEqual(['slow']);
    expect((await resultsOf(run.sessionId)).at(-1)).toBe('slow is done');
  });
});

describe('a handover while the first preview is being sent', () => {
  const store = openOwnStore();

  it('hands the preview over to the next process as a sent message', async () => {
    const conversation = unique('c');
    await aWorker(store()).accept(aMessage({ conversation, text: 'go' }));
    const shutdown = new AbortController();
    const sending = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<SendResult>();
    const send = () => {
      sending.resolve();
      return arrived.promise;
    };
    const capabilities = {
      ...plainCapabilities,
      preview: { dm: 'edit', group: 'edit' },
      previewIntervalMs: { dm: 5, group: 5 },
    };
    const channelFor = () =>
      ({ adapter: { send }, definition: { capabilities } }) as unknown as HostedChannel;
    const goesOn = Promise.withResolvers<void>();
    const wait: Clock['wait'] = (ms, signal) => {
      if (shutdown.signal.aborted) goesOn.resolve();
      return systemClock.wait(ms, signal);
    };
    const writes: string[] = [];
    const noted: Store = {
      ...store(),
      write: (command, input) => {
        writes.push(command.name);
        if (command.name === handOver.name) goesOn.resolve();
        return store().write(command, input);
      },
    };
    const settings = { ...runSettings, isPreviewOn: true };
    const playing = playNext(noted, aLane(conversation).key, {
      model: scriptedModel(
        hangsAfter([{ type: 'content_start' }, { type: 'content_delta', text: 'The sky is blue today. ' }]),
      ),
      over: { channelFor, settings, clock: { ...systemClock, wait } },
      signal: shutdown.signal,
    });
    await sending.promise;
    shutdown.abort();
    await goesOn.promise;
    arrived.resolve({ kind: 'sent', receipts: ['1' as MessageId] });
    const { run } = await playing;
    const steps = [recordPreview.name, handOver.name];
    expect(writes.filter((name) => steps.includes(name))).toEqual([steps[0], ...steps]);
    expect(await store().read(readPreview, { runId: run.runId })).toMatchObject({ messageId: '1' });
  });
});
