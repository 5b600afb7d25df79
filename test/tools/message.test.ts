import { expect, it } from 'vitest';
import { agentId, runId, type SessionKey, sessionId } from '#contracts/ids.ts';
import type { ToolRun } from '#contracts/tool.ts';
import { createMessageTool } from '../../src/tools/message.ts';
import { aRoute } from '../replies/reply-builders.ts';
import { shaping } from '../support/free-loop.ts';

const run: ToolRun = {
  runId: runId('run'),
  sessionId: sessionId('session'),
  // A key of the codec's form isn't needed here.
  sessionKey: 'agent:main:main' as SessionKey,
  agentId: agentId('main'),
  route: aRoute(),
  authority: 'owner',
  workspace: '/nowhere',
  epoch: 1,
};

/** What a call of the tool with this text sends and says. */
async function callWith(text: string) {
  const sent: string[] = [];
  const tool = createMessageTool(
    {
      post: {
        settled: () => undefined,
        send: async ({ contents, route }) => {
          for (const content of contents) if (content.kind === 'text') sent.push(content.text.text);
          return { keys: [], conversationKey: '', state: 'sent', problem: undefined, route, receipts: [] };
        },
      },
      shaper: shaping.shaper,
      capabilitiesFor: () => undefined,
    },
    run,
  );
  const ctx = { callId: 'call', run, signal: new AbortController().signal, update: () => undefined };
  return { output: await tool.execute({ text }, ctx), sent };
}

it.each(['NO_REPLY', ' **no_reply** ', '{"action": "NO_REPLY"}'])('sends nothing for %j', async (text) => {
  const { output, sent } = await callWith(text);
  expect(sent).toEqual([]);
  expect(output).toEqual({ text: expect.stringMatching(/^Nothing was sent/) });
});

it('sends no silent token with what it sends, and remembers what was sent', async () => {
  const { output, sent } = await callWith('Done.\n\nNO_REPLY');
  expect(sent).toEqual(['Done.']);
  expect(output).toMatchObject({ text: 'Sent.', metadata: { sent: { text: 'Done.' } } });
});
