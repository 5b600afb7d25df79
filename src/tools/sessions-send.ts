import { z } from 'zod';
import { ParleyError } from '#contracts/errors.ts';
import { defineTool, type Tool, type ToolRun } from '#contracts/tool.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { maxHops, maxWaiting, type SessionSend, sendToSession } from '../store/lanes/send-to-session.ts';

export type SessionsSendDeps = { readonly store: Store; start(effects: Effects): void };

const inputSchema = z.object({
  session: z
    .string()
    .min(1)
    .max(2_048)
    .describe('Session key of another conversation; sessions_list shows them.'),
  text: z.string().trim().min(1).max(32_000),
});

/**
 * Creates the tool that gives another conversation something to do. Its effect is one transaction under the call's id,
 * so a repeated call re-attaches to the item that it stored. Nothing is sent here: the final answer stays as it is.
 */
export function createSessionsSendTool({ store, start }: SessionsSendDeps, run: ToolRun): Tool {
  const { sessionKey: laneKey, runId, epoch } = run;
  return defineTool<z.infer<typeof inputSchema>>({
    name: 'sessions_send',
    description:
      'Give the agent of another conversation something to do. It reads your text there as a message, and its answer goes ' +
      'to that conversation, not to you. To only say something there, use message.',
    inputSchema,
    parallelSafe: false,
    replay: 'durable',
    // As for messages to other conversations.
    authority: 'owner',
    execute: async ({ session: toLane, text }, { callId }) => {
      const sent = await store.write(sendToSession, { laneKey, runId, epoch, callId, toLane, text });
      if (sent.kind === 'refused') throw new ParleyError('tool_failed', refusals[sent.reason]);
      start(sent.effects);
      return { text: JSON.stringify({ status: 'accepted', session: toLane, note }) };
    },
  });
}

const note = 'It is answered there; you are not told. Do not wait or ask for it.';

const refusals: Readonly<Record<Extract<SessionSend, { kind: 'refused' }>['reason'], string>> = {
  itself: 'That is this conversation. Answer in text.',
  'sub-agent': 'That is a sub-agent. Use subagents to send it a message.',
  unknown: 'There is no such conversation; sessions_list shows the existing ones.',
  'nobody-wrote': 'Nobody has written there yet, so there is nowhere to answer.',
  'too-far': `This turn was itself begun by a message that agents have passed on ${maxHops} times, the maximum. Answer here instead.`,
  'too-many': `${maxWaiting} such messages already wait there, the maximum. Nothing was sent.`,
};
