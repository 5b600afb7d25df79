import { setTimeout as pause } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import type { Fault } from '../platforms/telegram/faults.ts';
import type { TelegramServer } from '../platforms/telegram/server.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { forCrowd, gatherCrowd } from './crowd.ts';
import { ada, said, startTelegramGateway, telegramState, untilSaid } from './telegram-gateway.ts';
import { until } from './until.ts';

const awayMs = process.env.PARLEY_LONG === '1' ? 30_000 : 5_000;

const outcomes = (dataDir: string) =>
  readStore(dataDir, 'select outcome, outcomeReason as reason from inbox order by seq');
const parts = (dataDir: string) => readStore(dataDir, 'select state from outbox order by place');

describe.concurrent('Parley loses nothing and doubles nothing when Telegram', () => {
  test(`is away for ${awayMs / 1000} s while answers are due and people go on writing`, {
    timeout: awayMs + 60_000,
  }, async ({ expect, onTestFinished }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({ config: forCrowd }, onTestFinished);
    const crowd = gatherCrowd(telegram, 5);
    const gate = createGate();
    model.script((body) => ({ text: `You said: ${lastUserText(body)}`, hold: { gate } }));
    crowd.speaks();
    await model.waitForRequest(5, 15_000);
    await telegram.goAway();
    gate.open();
    const tried = `select 1 from outbox where state = 'pending' and problem is not null`;
    await until(() => readStore(dataDir, tried).length === 5, { what: 'answers that could not be sent' });
    crowd.speaks();
    // How long it is away is the fault itself.
    await pause(awayMs);
    expect(crowd.answered()).toBe(0);
    await telegram.comeBack();
    await untilAtRest(dataDir, 10, 10_000);
    expect(crowd.breaches(dataDir)).toEqual([]);
  });

  const ambiguous: readonly { readonly what: string; readonly fault: Fault; readonly stands: number }[] = [
    { what: 'takes an answer and is cut before it says so', fault: { kind: 'drop-answer' }, stands: 1 },
    { what: 'is cut before it takes an answer', fault: { kind: 'cut' }, stands: 0 },
    { what: 'stands behind a proxy that answers 502', fault: { kind: 'page', code: 502 }, stands: 0 },
  ];

  test.for(ambiguous)(
    '$what: it is never repeated blindly, and recorded as unknown',
    async ({ fault, stands }, { expect, onTestFinished }) => {
      const { telegram, dataDir } = await startTelegramGateway({}, onTestFinished);
      telegram.fault(fault, { method: 'sendMessage' });
      telegram.userSends({ from: ada, text: 'One.' });
      await untilAtRest(dataDir, 1);
      expect(parts(dataDir)).toEqual([{ state: 'unknown' }]);
      expect(outcomes(dataDir)).toEqual([{ outcome: 'answered', reason: 'delivery unknown' }]);
      telegram.userSends({ from: ada, text: 'Two.' });
      await untilSaid(telegram, { chat: ada.id, text: /\[Note from the gateway\][\s\S]*Two\.$/ });
      await untilAtRest(dataDir, 2);
      expect(said(telegram, ada.id).filter((text) => text === 'You said: One.')).toHaveLength(stands);
      expect(telegram.calls.filter(({ method }) => method === 'sendMessage')).toHaveLength(2);
      expect(findBreaches(dataDir)).toEqual([]);
    },
  );

  const repeated: readonly { readonly what: string; readonly fault: Fault }[] = [
    {
      what: '429',
      fault: { kind: 'refuse', code: 429, description: 'Too Many Requests', parameters: { retry_after: 2 } },
    },
    { what: '500', fault: { kind: 'refuse', code: 500, description: 'Internal Server Error' } },
  ];

  test.for(repeated)(
    'refuses an answer with $what: it is sent once it may be',
    async ({ fault }, { expect, onTestFinished }) => {
      const { telegram, dataDir } = await startTelegramGateway({}, onTestFinished);
      telegram.fault(fault, { method: 'sendMessage' });
      telegram.userSends({ from: ada, text: 'One.' });
      await untilSaid(telegram, { chat: ada.id, text: 'You said: One.' });
      await untilAtRest(dataDir, 1);
      expect(said(telegram, ada.id)).toHaveLength(1);
      expect(outcomes(dataDir)).toEqual([{ outcome: 'answered', reason: null }]);
      expect(findBreaches(dataDir)).toEqual([]);
    },
  );

  test('is away when Parley starts', { timeout: 60_000 }, async ({ expect, onTestFinished }) => {
    const { telegram, dataDir, parley, start } = await startTelegramGateway(
      { config: forCrowd },
      onTestFinished,
    );
    const crowd = gatherCrowd(telegram, 3);
    crowd.speaks();
    await untilAtRest(dataDir, 3);
    await parley().stop();
    await telegram.goAway();
    crowd.speaks();
    await start();
    const { state, detail } = await telegramState(parley().url);
    expect([state, detail]).toEqual(['trouble', expect.stringContaining('ECONNREFUSED')]);
    await telegram.comeBack();
    await untilAtRest(dataDir, 6, 20_000);
    expect(crowd.breaches(dataDir)).toEqual([]);
  });

  test('refuses every sign of life: the answers come all the same', async ({ expect, onTestFinished }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({ config: forCrowd }, onTestFinished);
    const crowd = gatherCrowd(telegram, 2);
    const tooMany: Fault = {
      kind: 'refuse',
      code: 429,
      description: 'Too Many Requests: retry after 60',
      parameters: { retry_after: 60 },
    };
    telegram.fault(tooMany, { method: 'sendMessageDraft', times: 100 });
    telegram.fault({ kind: 'page', code: 502 }, { method: 'sendChatAction', times: 100 });
    model.script((body) => ({ chunks: ['You said: ', lastUserText(body)], chunkDelayMs: 500 }));
    crowd.speaks();
    await untilAtRest(dataDir, 2);
    expect(crowd.breaches(dataDir)).toEqual([]);
    const drafts = telegram.calls.filter(({ method }) => method === 'sendMessageDraft');
    expect(drafts.length).toBeLessThanOrEqual(2);
  });

  test('refuses a file: the message is answered and names what is missing', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({}, onTestFinished);
    const file = telegram.world.addFile({
      name: 'plan.pdf',
      mimeType: 'application/pdf',
      bytes: Buffer.from('x'),
    });
    telegram.fault(
      { kind: 'refuse', code: 400, description: 'Bad Request: file is too big' },
      { method: 'getFile' },
    );
    telegram.userSends({ from: ada, text: 'Read this.', document: file });
    await untilSaid(telegram, {
      chat: ada.id,
      text: /^You said: Read this\.\n\[attachment plan\.pdf is missing: /,
    });
    await untilAtRest(dataDir, 1);
    expect(model.requests).toHaveLength(1);
    expect(said(telegram, ada.id)).toHaveLength(1);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('delivers its updates twice, in another order, and hours later again', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, dataDir, parley, start } = await startTelegramGateway(
      { config: forCrowd },
      onTestFinished,
    );
    const crowd = gatherCrowd(telegram, 6);
    telegram.updates.arrangeNext((updates) => [...updates, ...updates].reverse());
    crowd.speaks();
    telegram.updates.redeliver(6);
    await telegram.waitFor(() => crowd.answered() === 6, 15_000);
    telegram.updates.redeliver(6);
    crowd.speaks();
    await untilAtRest(dataDir, 12);
    await parley().stop();
    telegram.updates.redeliver(12);
    telegram.updates.arrangeNext((updates) => [...updates].reverse());
    crowd.speaks();
    await start();
    await telegram.waitFor(() => crowd.answered() === 18, 15_000);
    await untilAtRest(dataDir, 18);
    expect(crowd.breaches(dataDir)).toEqual([]);
    expect(readStore(dataDir, 'select 1 from ledger')).toHaveLength(18);
  });

  test('sends what nobody can read: it is kept raw and holds up nobody', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, dataDir } = await startTelegramGateway({ config: forCrowd }, onTestFinished);
    const crowd = gatherCrowd(telegram, 3);
    const poison: readonly (readonly [number, Record<string, unknown>])[] = [
      [500_000_001, { message: { message_id: 'seven', chat: 'nowhere', secret: 'kept-1' } }],
      [500_000_002, { message: nested(800) }],
      [500_000_003, { edited_message: null, note: 'kept-3' }],
      [500_000_004, { message_reaction: { chat: { id: {} }, note: 'kept-4' } }],
      [500_000_005, { callback_query: { id: 7, from: [], note: 'kept-5' } }],
    ];
    crowd.speaks();
    for (const [updateId, body] of poison) telegram.updates.pushRaw({ update_id: updateId, ...body });
    telegram.updates.pushRaw({ note: 'kept-6' } as never);
    crowd.speaks();
    await telegram.waitFor(() => crowd.answered() === 6, 15_000);
    await untilAtRest(dataDir, 12);
    const refused = readStore(
      dataDir,
      `select reason, raw from ledger where outcome = 'refused' order by eventKey`,
    );
    expect(refused.map(({ reason }) => reason)).toEqual(Array(6).fill('unreadable'));
    const raw = refused.map((row) => row.raw).join('\n');
    for (const kept of [1, 3, 4, 5, 6]) expect(raw).toContain(`kept-${kept}`);
    expect(crowd.breaches(dataDir)).toEqual([]);
  });

  test('has a second poller on the same bot: the conflict is shown, and nothing is lost', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, dataDir, parley } = await startTelegramGateway({ config: forCrowd }, onTestFinished);
    const crowd = gatherCrowd(telegram, 3);
    const poller = startSecondPoller(telegram);
    crowd.speaks();
    await telegram.waitFor(() => telegram.calls.some(({ status }) => status === 409), 10_000);
    await until(async () => (await telegramState(parley().url)).state === 'trouble', {
      what: 'the conflict on show',
    });
    expect((await telegramState(parley().url)).detail).toMatch(/terminated by other getUpdates request/);
    await poller.stop();
    await until(async () => (await telegramState(parley().url)).state === 'on', {
      what: 'the end of the conflict',
    });
    crowd.speaks();
    await untilAtRest(dataDir, 6, 20_000);
    expect(crowd.breaches(dataDir)).toEqual([]);
  });
});

function nested(depth: number): unknown {
  let value: unknown = 'deep';
  for (let level = 0; level < depth; level++) value = { reply_to_message: value };
  return value;
}

/** Another program with the same token, which asks again and again and confirms nothing. */
function startSecondPoller(telegram: TelegramServer): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const loop = async () => {
    while (!signal.aborted) {
      await fetch(`${telegram.apiRoot}/bot${telegram.token}/getUpdates?timeout=5`, { signal })
        .then((answer) => answer.text())
        .catch(() => undefined);
    }
  };
  const running = loop();
  return {
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}
