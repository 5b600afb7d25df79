import { describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { Capabilities } from '../../src/contracts/capabilities.ts';
import type { ChannelAdapter, HostedChannel } from '../../src/contracts/channel.ts';
import { ParleyError } from '../../src/contracts/errors.ts';
import type { MessageId } from '../../src/contracts/ids.ts';
import type { Outbound, OutboundContent, SendResult } from '../../src/contracts/outbound.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import { createLiveView, type LiveViewOptions } from '../../src/runs/live-view.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { recordPreview } from '../../src/store/delivery/preview.ts';
import { readPartStates } from '../../src/store/delivery/tool-send.ts';
import { handOver } from '../../src/store/lanes/leases.ts';
import { readPreview } from '../../src/store/lanes/recover-run.ts';
import { completes, scriptedModel } from '../agent/support/scripted-model.ts';
import { plainCapabilities } from '../channel-host/plain-capabilities.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aLane, aMessage, aRoute, aWorker, routeFor, unique } from '../store/builders.ts';
import { openOwnStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';
import { playNext, runSettings } from './run-builders.ts';

const capabilities: Capabilities = {
  ...plainCapabilities,
  preview: { dm: 'edit', group: 'draft' },
  previewIntervalMs: { dm: 5, group: 5 },
};

/** Returns a network that keeps what it was sent; message ids count from 1. */
function aNetwork(answer?: SendResult) {
  const sent: OutboundContent[] = [];
  const drafts: string[] = [];
  const typing: AbortSignal[] = [];
  const adapter: ChannelAdapter = {
    identify: () => Promise.reject(new Error('not asked here')),
    start: () => Promise.reject(new Error('not asked here')),
    stop: async () => undefined,
    send: async ({ content }) => {
      sent.push(content);
      return answer ?? { kind: 'sent', receipts: [`${sent.length}` as MessageId] };
    },
    typing: {
      refreshMs: 60_000,
      show: async (_, signal) => {
        typing.push(signal);
      },
    },
    preview: {
      draft: async (_route, _id, text) => {
        drafts.push(text.text);
      },
    },
  };
  const shown = () =>
    sent.map((content) =>
      content.kind === 'text' || content.kind === 'edit' ? [content.kind, content.text.text] : [content.kind],
    );
  return { adapter, sent, drafts, typing, shown };
}

describe('the live view of a run', () => {
  const open = openOwnStore();

  const aView = (adapter: ChannelAdapter, over: Partial<LiveViewOptions> = {}) =>
    createLiveView({
      adapter,
      capabilities,
      chatKind: 'dm',
      isPreviewOn: true,
      display: {},
      route: aRoute(crypto.randomUUID()),
      laneKey: 'no lane',
      runId: crypto.randomUUID(),
      epoch: 1,
      preview: undefined,
      pace: undefined,
      lookFor: () => async () => undefined,
      store: open(),
      journal: { shown: () => undefined, end: () => undefined },
      clock: systemClock,
      log: silentLog,
      probe: noProbe,
      ...over,
    });

  it('sends one preview, edits it while the answer grows, and records it', async () => {
    const network = aNetwork();
    const view = aView(network.adapter);
    view.push('Good');
    await vi.waitFor(() => expect(network.shown()).toEqual([['text', 'Good']]));
    view.push(' morning');
    await vi.waitFor(() => expect(network.shown().at(-1)).toEqual(['edit', 'Good morning']));
    const preview = await view.finishPreview();
    expect(preview).toMatchObject({ messageId: '1' });
    const [part] = await open().read(readPartStates, { keys: [preview?.key ?? ''] });
    expect(part).toMatchObject({ state: 'sent', receipts: ['1'] });
    await view.end();
  });

  it('sends a new preview for the next answer of the run', async () => {
    const network = aNetwork();
    const view = aView(network.adapter);
    view.push('first');
    await vi.waitFor(() => expect(network.sent).toHaveLength(1));
    const first = await view.finishPreview();
    view.next();
    view.push('second');
    await vi.waitFor(() => expect(network.shown().at(-1)).toEqual(['text', 'second']));
    const second = await view.finishPreview();
    expect(second?.key).not.toBe(first?.key);
    await view.end();
  });

  it('continues the preview that an earlier holder of the run left', async () => {
    const network = aNetwork();
    const view = aView(network.adapter, { preview: { key: 'run:preview:1.0', messageId: '77' } });
    view.push('again');
    await vi.waitFor(() => expect(network.sent).toMatchObject([{ kind: 'edit', messageId: '77' }]));
    expect(await view.finishPreview()).toEqual({ key: 'run:preview:1.0', messageId: '77' });
    await view.end();
  });

  it('uses a preview key that no earlier holder of the run has used', async () => {
    const runId = crypto.randomUUID();
    const keys = new Set<string>();
    for (const [epoch, preview] of [
      [1],
      [2],
      [3, { key: `${runId}:preview:2.0`, messageId: '77' }],
    ] as const) {
      const network = aNetwork();
      const view = aView(network.adapter, { runId, epoch, preview });
      // Its answer takes over the existing preview.
      if (preview) view.next();
      view.push('an answer');
      await vi.waitFor(() => expect(network.shown()).toEqual([['text', 'an answer']]));
      keys.add((await view.finishPreview())?.key ?? '');
      await view.end();
    }
    expect(keys).toEqual(new Set([1, 2, 3].map((epoch) => `${runId}:preview:${epoch}.0`)));
  });

  it.each<SendResult>([
    { kind: 'unknown', reason: 'cut off' },
    { kind: 'failed', failure: { kind: 'rejected' }, reason: 'no' },
  ])('stops previewing if the result of the first preview is $kind', async (answer) => {
    const network = aNetwork(answer);
    const runId = crypto.randomUUID();
    let clockReads = 0;
    const now = () => {
      clockReads += 1;
      return Date.now();
    };
    const clock = { ...systemClock, now };
    const view = aView(network.adapter, { runId, clock });
    view.push('one');
    await vi.waitFor(() => expect(network.sent).toHaveLength(1));
    expect(await view.finishPreview()).toBeUndefined();
    view.toolStarted('search');
    // The view reads the clock when the next preview is due.
    const readsSoFar = clockReads;
    await vi.waitFor(() => expect(clockReads).toBeGreaterThan(readsSoFar));
    await view.end();
    expect(network.sent).toHaveLength(1);
    const [part] = await open().read(readPartStates, { keys: [`${runId}:preview:1.0`] });
    expect(part?.state).toBe(answer.kind);
  });

  it("doesn't edit the preview while the network asks to wait, which would delay the answer", async () => {
    const network = aNetwork();
    let [now, clockReads] = [1_000_000, 0];
    const clock = {
      ...systemClock,
      now: () => {
        clockReads += 1;
        return now;
      },
    };
    const send: ChannelAdapter['send'] = async (part, signal) => {
      const result = await network.adapter.send(part, signal);
      return part.content.kind === 'edit' ? { kind: 'retry', afterMs: 5000, reason: 'flood' } : result;
    };
    const view = aView({ ...network.adapter, send }, { clock });
    for (const [index, words] of ['one', ' two'].entries()) {
      now += 1000;
      view.push(words);
      await vi.waitFor(() => expect(network.sent).toHaveLength(index + 1));
    }
    now += 1000;
    view.push(' three');
    // The view reads the clock when the next preview is due.
    const readsSoFar = clockReads;
    await vi.waitFor(() => expect(clockReads).toBeGreaterThan(readsSoFar));
    await view.end();
    expect(network.shown()).toEqual([
      ['text', 'one'],
      ['edit', 'one two'],
    ]);
  });

  it('keeps one preview call in flight, so that a slow network delays the answer by one call', async () => {
    const network = aNetwork();
    const answers: PromiseWithResolvers<void>[] = [];
    const send: ChannelAdapter['send'] = async (part, signal) => {
      const result = await network.adapter.send(part, signal);
      const answer = Promise.withResolvers<void>();
      answers.push(answer);
      await answer.promise;
      return result;
    };
    const view = aView({ ...network.adapter, send });
    const untilSent = (count: number) => vi.waitFor(() => expect(answers).toHaveLength(count));
    /** Writes more text and waits past the time at which it would be shown; timers fire in order. */
    const write = async (words: string) => {
      view.push(words);
      await systemClock.wait(4 * capabilities.previewIntervalMs.dm);
    };
    view.push('one');
    await untilSent(1);
    for (const words of [' two', ' three', ' four']) await write(words);
    answers[0]?.resolve();
    await untilSent(2);
    expect(network.shown().at(-1)).toEqual(['edit', 'one two three four']);
    await write(' five');
    const finished = view.finishPreview();
    answers[1]?.resolve();
    expect(await finished).toMatchObject({ messageId: '1' });
    expect(network.sent).toHaveLength(2);
    await view.end();
  });

  it("keeps the preview in the journal from the platform's answer until the store has it", async () => {
    const network = aNetwork();
    const runId = crypto.randomUUID();
    const key = `${runId}:preview:1.0`;
    const steps: unknown[] = [];
    const store: Store = {
      ...open(),
      write: (command, input) => {
        if (command.name === recordPreview.name) steps.push((input as { kind: string }).kind);
        return open().write(command, input);
      },
    };
    const journal: LiveViewOptions['journal'] = {
      shown: (preview) => steps.push(preview),
      end: (ended) => steps.push(ended),
    };
    const view = aView(network.adapter, { runId, laneKey: 'a lane', store, journal });
    view.push('one');
    await vi.waitFor(() => expect(steps).toHaveLength(4));
    expect(steps).toEqual(['sending', { key, messageId: '1', laneKey: 'a lane', epoch: 1 }, 'sent', key]);
    await view.end();
  });

  it('hands an unrecorded preview to the answer if the store is away when it is shown', async () => {
    const network = aNetwork();
    const runId = crypto.randomUUID();
    const store: Store = {
      ...open(),
      write: (command, input) => {
        const isShown = command.name === recordPreview.name && (input as { kind: string }).kind === 'sent';
        return isShown
          ? Promise.reject(new ParleyError('store_unavailable', 'away'))
          : open().write(command, input);
      },
    };
    const view = aView(network.adapter, { runId, store });
    view.push('one');
    await vi.waitFor(() => expect(network.sent).toHaveLength(1));
    view.push(' two');
    await vi.waitFor(() => expect(network.shown().at(-1)).toEqual(['edit', 'one two']));
    expect(await view.finishPreview()).toEqual({ key: `${runId}:preview:1.0`, messageId: '1' });
    await view.end();
  });

  it('sends the preview after everything that was said before', async () => {
    const network = aNetwork();
    const { begin, answer, deliver } = aConversation(open());
    const run = await begin();
    await answer(run, 'said before');
    let looks = 0;
    const store: Store = {
      ...open(),
      write: async (command, input) => {
        const written = await open().write(command, input);
        if (command.name === recordPreview.name) looks += 1;
        return written;
      },
    };
    const view = aView(network.adapter, { route: routeFor(run), store });
    view.push('said after');
    await vi.waitFor(() => expect(looks).toBeGreaterThan(1));
    // Nothing of it was seen, so the model may still be called again.
    await vi.waitFor(() => expect(view.isShown()).toBe(false));
    expect(network.sent).toEqual([]);
    await deliver();
    await vi.waitFor(() => expect(network.shown()).toEqual([['text', 'said after']]));
    await view.end();
  });

  it('deletes the preview if another process owns the run when the platform answers', async () => {
    const network = aNetwork();
    const [sending, arrived] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const send: ChannelAdapter['send'] = async (part, signal) => {
      sending.resolve();
      await arrived.promise;
      return network.adapter.send(part, signal);
    };
    const { begin, claimRun, claimPart } = aConversation(open());
    const run = await begin();
    const { laneKey, runId, epoch } = run;
    const view = aView({ ...network.adapter, send }, { route: routeFor(run), laneKey, runId, epoch });
    view.push('a half answer');
    await sending.promise;
    await open().write(handOver, run);
    expect(await claimRun()).toMatchObject({ runId, isResumed: true });
    arrived.resolve();
    await view.end();
    expect(await open().read(readPreview, { runId })).toBeUndefined();
    expect((await claimPart()).part.content).toEqual({ kind: 'delete', messageId: '1' });
  });

  it('shows no preview of an answer that is complete at once', async () => {
    const network = aNetwork();
    const slow = { ...capabilities, previewIntervalMs: { dm: 60_000, group: 60_000 } };
    const view = aView(network.adapter, { capabilities: slow });
    view.push('quick');
    expect(await view.finishPreview()).toBeUndefined();
    await view.end();
    expect(network.sent).toEqual([]);
  });

  it('shows no preview while the account has nothing left for it', async () => {
    const network = aNetwork();
    let left = 0;
    const mayShow = vi.fn(() => left-- > 0);
    const pace = { mayShow, turn: async () => true, refused: () => undefined };
    const view = aView(network.adapter, { pace });
    view.push('a half answer');
    await vi.waitFor(() => expect(mayShow.mock.calls.length).toBeGreaterThan(3));
    expect(network.sent).toEqual([]);
    left = 1;
    await vi.waitFor(() => expect(network.shown()).toEqual([['text', 'a half answer']]));
    await view.end();
  });

  it('shows typing only while the account has something left for it, and soon after', async () => {
    const network = aNetwork();
    const mayShow = vi.fn(() => true).mockReturnValueOnce(false);
    const pace = { mayShow, turn: async () => true, refused: () => undefined };
    const waits: number[] = [];
    const wait = (ms: number, signal?: AbortSignal) => {
      waits.push(ms);
      return systemClock.wait(Math.min(ms, 10), signal);
    };
    const clock = { ...systemClock, wait };
    const view = aView(network.adapter, { pace, clock, isPreviewOn: false });
    await vi.waitFor(() => expect(waits.length).toBeGreaterThan(2));
    await view.end();
    expect(waits.slice(0, 3)).toEqual([300, 1_000, 60_000]);
    expect(network.typing.length).toBeGreaterThan(0);
  });

  it("uses the network's own drafts, which leave nothing to clean up", async () => {
    const network = aNetwork();
    const view = aView(network.adapter, { chatKind: 'group' });
    view.push('draft');
    await vi.waitFor(() => expect(network.drafts).toEqual(['draft']));
    expect(await view.finishPreview()).toBeUndefined();
    expect(network.sent).toEqual([]);
    await view.end();
  });

  it('shows only typing if previews are off, and stops typing when the run ends', async () => {
    const network = aNetwork();
    const view = aView(network.adapter, { isPreviewOn: false });
    view.push('hidden');
    await vi.waitFor(() => expect(network.typing).toHaveLength(1));
    await view.end();
    expect(network.typing.map((signal) => signal.aborted)).toEqual([true]);
    expect(network.sent).toEqual([]);
  });
});

/** Reads what the run's answers send: the kind of each part, and the message it quotes. */
const readAnswered: StoreQuery<{ readonly runId: string }, readonly (string | undefined)[][]> = {
  query: 'readAnswered',
  run: async (tx, { runId }) => {
    const parts = tx.db.selectFrom('outbox').select(['content', 'route']).where('runId', '=', runId);
    const rows = await parts.where('purpose', '<>', 'preview').orderBy('place').execute();
    return rows.map(({ content, route }) => [JSON.parse(content).kind, JSON.parse(route).replyTo]);
  },
};

describe('the quote of a preview', () => {
  const open = openOwnStore();

  const play = async (text: string, replyToMode: 'off' | 'first') => {
    const [conversation, asked] = [unique('c'), unique('m')];
    await aWorker(open()).accept(aMessage({ conversation, text: 'go', messageId: asked }));
    const shown = Promise.withResolvers<Outbound>();
    const send: ChannelAdapter['send'] = async (part) => {
      shown.resolve(part);
      return { kind: 'sent', receipts: ['1' as MessageId] };
    };
    const channel = { adapter: { send }, definition: { capabilities } } as unknown as HostedChannel;
    const { run } = await playNext(open(), aLane(conversation).key, {
      model: scriptedModel(async function* () {
        yield { type: 'content_start' };
        yield { type: 'content_delta', text };
        await shown.promise;
        yield { type: 'content_stop' };
        yield completes('end_turn');
      }),
      over: { channelFor: () => channel, settings: { ...runSettings, isPreviewOn: true, replyToMode } },
    });
    const { route } = await shown.promise;
    const answered = await open().read(readAnswered, run);
    const nameOf = (id: string | undefined) => (id === asked ? 'asked' : id);
    return [nameOf(route.replyTo), ...answered.map(([kind, quoted]) => [kind, nameOf(quoted)])];
  };

  it('quotes the same message as the answer', async () => {
    expect(await play('Good morning', 'off')).toEqual([undefined, ['edit', undefined]]);
    expect(await play('Good morning', 'first')).toEqual(['asked', ['edit', 'asked']]);
  });

  it('sends the answer as a new message if it quotes another message than the preview', async () => {
    const anew = [
      ['delete', undefined],
      ['text', 'asked'],
    ];
    expect(await play('[[reply_to_current]]Good morning', 'off')).toEqual([undefined, ...anew]);
  });
});
