import { expect, it } from 'vitest';
import { z } from 'zod';
import { defineChannelTool } from '#contracts/channel-abilities.ts';
import { messageId } from '#contracts/ids.ts';
import type { ToolSendEnd } from '../../src/outbox/tool-sender.ts';
import type { ToolSendInput } from '../../src/store/delivery/tool-send.ts';
import { createChannelTool } from '../../src/tools/channel-tool.ts';
import { aRun } from '../agent/support/builders.ts';
import { aRoute } from '../replies/reply-builders.ts';

const flag = defineChannelTool<{ message: string; color: string }>({
  name: 'flag',
  description: 'Flags a message.',
  inputSchema: z.object({ message: z.string(), color: z.string().default('red') }),
  authority: 'member',
  act: ({ message, color }) => ({
    input: { color },
    summary: `flag ${color}`,
    messageId: messageId(message),
  }),
});

/** Calls the tool as the loop does. Returns what it sends and its output. */
async function call(input: object, end: Partial<ToolSendEnd> = {}, replyTo = '41') {
  const postings: ToolSendInput[] = [];
  const toolSender = {
    settled: () => undefined,
    isPosted: async () => false,
    send: async (posting: ToolSendInput): Promise<ToolSendEnd> => {
      postings.push(posting);
      const { route } = posting;
      const sent = { state: 'sent', problem: undefined, receipts: [], sentParts: 1, allParts: 1 } as const;
      return { ...sent, keys: ['0'], route, conversationKey: '', ...end };
    },
  };
  const run = { ...aRun, route: aRoute({ replyTo }) };
  const tool = createChannelTool({ toolSender, tool: flag }, run);
  const ctx = { callId: 'call', run, signal: new AbortController().signal, update: () => undefined };
  const output = await tool.execute(tool.inputSchema.parse(tool.prepareArguments?.(input)), ctx);
  return { output, postings, tool };
}

it("stores what a channel's tool does as one part of the run's own conversation, under the call's key", async () => {
  const { postings, output, tool } = await call({ message: 'current', color: null });
  expect(tool).toMatchObject({ name: 'flag', replay: 'durable', authority: 'member', parallelSafe: false });
  expect(postings).toMatchObject([
    {
      key: `${aRun.runId}:tool:call`,
      route: aRoute(),
      contents: [
        { kind: 'action', tool: 'flag', input: { color: 'red' }, summary: 'flag red', messageId: '41' },
      ],
    },
  ]);
  expect(postings[0]?.route).toEqual(aRoute());
  expect(postings[0]).not.toHaveProperty('toLane');
  expect(output).toEqual({ text: 'Done.' });
});

it('says how an action ended, and never that one that may have arrived should be repeated', async () => {
  const ended = async (end: Partial<ToolSendEnd>) => (await call({ message: '7' }, end)).output;
  expect(await ended({ receipts: ['99'] })).toEqual({ text: 'Sent as message 99.' });
  for (const state of ['unknown', 'pending', 'sending'] as const)
    expect(await ended({ state })).toMatchObject({ text: expect.stringContaining('Do not repeat it.') });
  const refusal = { state: 'failed', problem: 'not enough rights' } as const;
  await expect(ended(refusal)).rejects.toThrow('It was not done: not enough rights');
});
