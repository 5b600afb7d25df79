import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { flushEventLoop } from '../../support/flush-event-loop.ts';
import { type ContractCheck, checksOf } from './check.ts';
import type { Trial } from './trial.ts';

/** Sends after a person has written: some networks only let a bot write where someone has. */
function afterAGreeting(run: ContractCheck['run']): ContractCheck['run'] {
  return async (trial) => {
    await trial.begin();
    await trial.harness.personSays('hi');
    await trial.untilTexts(1);
    await run(trial);
  };
}

function inConversation(rules: Readonly<Record<string, ContractCheck['run']>>): readonly ContractCheck[] {
  return checksOf(
    'sending',
    Object.fromEntries(Object.entries(rules).map(([name, run]) => [name, afterAGreeting(run)])),
  );
}

const textChecks = inConversation({
  'returns the ids of the messages that it sent': async (trial) => {
    const receipt = trial.receiptOf(await trial.sendText('an answer'));
    expect(await trial.harness.standing()).toMatchObject([{ messageId: receipt, text: 'an answer' }]);
  },

  'sends a text that fills the limit in full': async (trial) => {
    const { maxLength } = trial.harness.capabilities.text;
    const text = `${'limit '.repeat(maxLength / 6 + 1).slice(0, maxLength - 1)}!`;
    trial.receiptOf(await trial.sendText(text));
    expect(await trial.standingTexts()).toEqual([text]);
  },

  'sends no part of a text that exceeds the limit': async (trial) => {
    const result = await trial.sendText('x'.repeat(trial.harness.capabilities.text.maxLength + 1));
    expect(result).toMatchObject({ kind: 'failed', failure: { kind: 'rejected' } });
    expect(await trial.harness.standing()).toEqual([]);
  },

  'formats exactly the given characters': async (trial) => {
    const text = 'Grüße 👋🏽 bold and code';
    const at = (part: string) => ({ start: text.indexOf(part), length: part.length });
    const spans = [
      { kind: 'bold', ...at('bold') },
      { kind: 'code', ...at('code') },
    ] as const;
    trial.receiptOf(await trial.sendText({ text, spans }));
    const [shown] = await trial.harness.standing();
    expect(shown?.text).toBe(text);
    expect(shown?.spans).toEqual(spans);
  },

  'shows markup characters of the text literally': async (trial) => {
    const text = '*not bold* _nor this_ <b>nor</b> `that` [a](b) \\ & ~';
    trial.receiptOf(await trial.sendText(text));
    expect(await trial.harness.standing()).toMatchObject([{ text, spans: [] }]);
  },

  'quotes the message that a text answers': async (trial) => {
    trial.only(trial.harness.capabilities.canQuote);
    const { messageId: replyTo } = (await trial.first('message')).event;
    const own = trial.receiptOf(await trial.sendText('unquoted'));
    trial.receiptOf(await trial.sendReply('to a person', replyTo));
    trial.receiptOf(await trial.sendReply('to itself', own));
    const shown = await trial.harness.standing();
    expect(shown.map(({ text, quotes }) => [text, quotes])).toEqual([
      ['unquoted', undefined],
      ['to a person', replyTo],
      ['to itself', own],
    ]);
  },

  'recognizes a send that is repeated under its key': async (trial) => {
    trial.only(trial.harness.capabilities.repeatSafeMs > 0);
    const receipt = trial.receiptOf(await trial.sendText('only once'));
    expect(trial.receiptOf(await trial.sendText('only once'))).toBe(receipt);
    expect(await trial.standingTexts()).toEqual(['only once']);
  },
});

const changeOwnChecks = inConversation({
  'edits a message that it sent, and accepts the same edit again': async (trial) => {
    const messageId = trial.receiptOf(await trial.sendText('first'));
    const edit = { kind: 'edit', messageId, text: { text: 'second', spans: [] } } as const;
    expect((await trial.send(edit)).kind).toBe('sent');
    expect(await trial.send(edit)).toEqual({ kind: 'sent', receipts: [messageId] });
    expect(await trial.harness.standing()).toMatchObject([{ messageId, text: 'second' }]);
  },

  'deletes a message that it sent, and accepts the same deletion again': async (trial) => {
    const messageId = trial.receiptOf(await trial.sendText('gone soon'));
    expect((await trial.send({ kind: 'delete', messageId })).kind).toBe('sent');
    expect((await trial.send({ kind: 'delete', messageId })).kind).toBe('sent');
    expect(await trial.harness.standing()).toEqual([]);
  },

  "puts a reaction on a person's message": async (trial) => {
    trial.only(trial.harness.capabilities.canReact);
    const { messageId } = (await trial.first('message')).event;
    const reaction = { kind: 'reaction', messageId, emoji: '👍' } as const;
    for (let times = 0; times < 2; times += 1) {
      expect((await trial.send(reaction)).kind).toBe('sent');
      expect(trial.harness.botReactions?.()).toEqual(['👍']);
    }
    expect(await trial.harness.standing()).toEqual([]);
  },
});

const actionChecks = inConversation({
  'rejects an action of a tool that it does not have': async (trial) => {
    const action = { kind: 'action', tool: 'dance', input: { steps: 3 }, summary: 'dance' } as const;
    const result = await trial.send(action);
    expect(result).toMatchObject({ kind: 'failed', failure: { kind: 'rejected' } });
    expect(await trial.harness.standing()).toEqual([]);
  },
});

const mediaChecks = inConversation({
  'sends a file unchanged, with its name and caption': async (trial) => {
    const { media } = trial.harness.capabilities;
    trial.only(media !== undefined);
    await using file = await aFile('the bytes');
    const caption = { text: 'read this', spans: [{ kind: 'bold', start: 0, length: 4 }] } as const;
    const content = { kind: 'media', path: file.path, mimeType: 'text/plain', name: 'notes.txt' } as const;
    const messageId = trial.receiptOf(await trial.send({ ...content, caption }));
    const shown = { name: 'notes.txt', text: 'the bytes' };
    expect(await trial.harness.standing()).toEqual([
      expect.objectContaining({ messageId, ...caption, file: shown }),
    ]);
  },

  'sends no file that exceeds the limit or is gone': async (trial) => {
    const { media } = trial.harness.capabilities;
    trial.only(media !== undefined);
    await using file = await aFile('');
    await truncate(file.path, (media?.maxBytes ?? 0) + 1);
    for (const path of [file.path, `${file.path}.gone`]) {
      const content = { kind: 'media', path, mimeType: 'text/plain', name: 'notes.txt' } as const;
      expect(await trial.send(content)).toMatchObject({ kind: 'failed', failure: { kind: 'rejected' } });
    }
    expect(await trial.harness.standing()).toEqual([]);
  },
});

async function aFile(text: string): Promise<AsyncDisposable & { readonly path: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-contract-'));
  const path = join(folder, 'a-file');
  await writeFile(path, text);
  return { path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}

const failureChecks = inConversation({
  'says how long a rate limit asks to wait': async (trial) => {
    faultOf(trial, 'rateLimited')(7000);
    expect(await trial.sendText('soon')).toMatchObject({ kind: 'retry', afterMs: 7000 });
    expect(await trial.harness.standing()).toEqual([]);
  },

  'reports a conversation that cannot be reached': async (trial) => {
    faultOf(trial, 'unreachable')();
    expect(await trial.sendText('hello?')).toMatchObject({
      kind: 'failed',
      failure: { kind: 'unreachable' },
    });
  },

  'reports markup that the platform does not understand': async (trial) => {
    faultOf(trial, 'unreadableMarkup')();
    expect(await trial.sendText('odd')).toMatchObject({ kind: 'failed', failure: { kind: 'markup' } });
  },

  'reports a send whose answer was lost as unknown and does not repeat it': async (trial) => {
    faultOf(trial, 'answerLost')();
    expect((await trial.sendText('once')).kind).toBe('unknown');
    expect(await trial.standingTexts()).toEqual(['once']);
  },

  'reports a send that was aborted in flight as unknown': async (trial) => {
    const taken = faultOf(trial, 'answerHangs')();
    const aborting = new AbortController();
    const result = trial.sendText('on its way', aborting.signal);
    await taken;
    aborting.abort();
    expect((await result).kind).toBe('unknown');
  },

  'asks for a retry if nothing listens': async (trial) => {
    const comeBack = await faultOf(trial, 'away')();
    await flushEventLoop();
    expect((await trial.sendText('later')).kind).toBe('retry');
    await comeBack();
    expect(await trial.harness.standing()).toEqual([]);
    trial.receiptOf(await trial.sendText('later'));
  },
});

type Faults = NonNullable<Trial['harness']['faults']>;

function faultOf<Name extends keyof Faults>(trial: Trial, name: Name): NonNullable<Faults[Name]> {
  const faults: Faults = trial.need(trial.harness.faults);
  // Each control works on its own; none uses `this`.
  return trial.need(faults[name]) as NonNullable<Faults[Name]>;
}

export const sendingChecks = [
  ...textChecks,
  ...changeOwnChecks,
  ...actionChecks,
  ...mediaChecks,
  ...failureChecks,
];
