import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { filesOf } from '#contracts/outbound.ts';
import type { Tool, ToolOutput } from '../../src/contracts/tool.ts';
import type { StoreQuery } from '../../src/store/base/command.ts';
import { json } from '../../src/store/base/json.ts';
import { aTool } from '../agent/support/builders.ts';
import { callsTools, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { playNext } from './run-builders.ts';

/** Reads the texts of a conversation's parts, and the names of its files. */
const sentIn: StoreQuery<string, readonly string[]> = {
  query: 'sentIn',
  run: async (tx, conversation) => {
    const parts = tx.db
      .selectFrom('outbox')
      .select('content')
      .where('conversationKey', '=', `test/bot/${conversation}`);
    return (await parts.orderBy('place').execute()).map((row) => {
      const content = json.outbound(row.content);
      if (content.kind === 'text') return content.text.text;
      return content.kind === 'media'
        ? filesOf(content)
            .map(({ name }) => `file ${name}`)
            .join(', ')
        : content.kind;
    });
  },
};

/** A tool whose result attaches files. */
function attaching(name: string, ...files: readonly string[]): Tool {
  return aTool(name, { execute: async () => ({ text: 'made', files: files.map((path) => ({ path })) }) });
}

/** Stands in for the copying. */
async function attachFiles({ files = [], ...output }: ToolOutput): Promise<ToolOutput> {
  const attached = files.map(({ path }) => {
    return {
      path: `sent-${randomUUID()}.0123abcd`,
      source: `/w/${path}`,
      mimeType: 'text/plain',
      name: path,
    };
  });
  return { ...output, metadata: { attached } };
}

const over = { attachFiles };
const calls = callsTools({ id: 'c', name: 'make' });

describeEachDatabase('files that tools attach', (open) => {
  it.each([
    ['a text', 'Here they are.', ['Here they are.', 'file a.txt', 'file b.txt']],
    ['silence', 'NO_REPLY', ['file a.txt', 'file b.txt']],
    ['nothing', '', ['file a.txt', 'file b.txt']],
  ])('sends attached files with an answer of %s', async (_, answer, sent) => {
    const { conversation, laneKey, say } = aConversation(open());
    await say('go');
    const model = scriptedModel(calls, says(answer));
    await playNext(open(), laneKey, { model, tools: [attaching('make', 'a.txt', 'b.txt')], over });
    expect(await open().read(sentIn, conversation)).toEqual(sent);
    const { inbox } = await readLane(open(), laneKey);
    expect(inbox.map(({ outcome }) => outcome)).toEqual(['answered']);
  });

  it('sends files that a tool attached before the run was resumed, once', async () => {
    const { conversation, laneKey, say } = aConversation(open());
    await say('go');
    const stopping = new AbortController();
    const hands = scriptedModel(calls, async function* (_, signal) {
      stopping.abort();
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      yield* [];
    });
    const tools = [attaching('make', 'a.txt')];
    const { exit } = await playNext(open(), laneKey, { model: hands, tools, over, signal: stopping.signal });
    expect(exit).toEqual({ kind: 'handed-over' });
    expect(await open().read(sentIn, conversation)).toEqual([]);
    await playNext(open(), laneKey, { model: scriptedModel(says('There.')), tools, over });
    expect(await open().read(sentIn, conversation)).toEqual(['There.', 'file a.txt']);
  });

  it('sends at most ten files with an answer and says that others are left out', async () => {
    const { conversation, laneKey, say } = aConversation(open());
    await say('go');
    const names = Array.from({ length: 12 }, (_, index) => `${index}.txt`);
    const tools = [attaching('make', ...names)];
    await playNext(open(), laneKey, { model: scriptedModel(calls, says('All.')), tools, over });
    const sent = await open().read(sentIn, conversation);
    expect(sent.slice(0, -1)).toEqual(['All.', ...names.slice(0, 10).map((name) => `file ${name}`)]);
    expect(sent.at(-1)).toContain('at most 10 files');
  });
});
